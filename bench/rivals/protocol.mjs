// The protocol of bench/run for rivals in JavaScript: arguments, payloads, the log of starts, and the wait for the last completion.
import { openSync, writeSync } from "node:fs";
import pg from "pg";

export const url = process.env.DATABASE_URL;
// Jobs that run at the same time in `work`, the same number for all systems.
export const WORKERS = 32;

// The system's monotonic clock in microseconds: the same for all processes, and never adjusted.
export const now = () => Number(process.hrtime.bigint() / 1000n);
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// A payload of about 100 bytes with the time of the enqueue call in microseconds.
export const payload = (id) => ({ id, sent: now(), pad: "x".repeat(60) });

// Runs the subcommand that the arguments name, and prints its result.
export async function main(commands) {
  const [name, ...args] = process.argv.slice(2);
  const result = await commands[name](...args.map((arg) => (/^\d+$/.test(arg) ? Number(arg) : arg)));
  console.log(JSON.stringify(result ?? {}));
  process.exit(0);
}

// Calls insert(payloads) for portions of `size` jobs; returns the jobs and the seconds.
export async function enqueueAll(jobs, size, insert) {
  const began = performance.now();
  for (let from = 0; from < jobs; from += size) {
    const count = Math.min(size, jobs - from);
    await insert(Array.from({ length: count }, (_, n) => payload(from + n)));
  }
  return { jobs, seconds: (performance.now() - began) / 1000 };
}

// Starts a worker and waits until `jobs` handlers ran and the database contains no unfinished job; returns the jobs and the seconds.
export async function drainAll(jobs, startWorker) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  let ran = 0;
  const began = performance.now();
  await startWorker(() => { ran += 1; });
  while (ran < jobs) await sleep(2);
  while (Number((await client.query(process.env.BENCH_UNFINISHED)).rows[0].unfinished) > 0) await sleep(5);
  return { jobs: ran, seconds: (performance.now() - began) / 1000 };
}

// Calls send(payload) at a steady rate; a call does not wait for the one before.
export async function sendAll(rate, seconds, send) {
  const began = performance.now();
  const pending = [];
  for (let n = 0; n < rate * seconds; n += 1) {
    const wait = began + (n * 1000) / rate - performance.now();
    if (wait > 0) await sleep(wait);
    pending.push(send(payload(n)));
  }
  await Promise.all(pending);
  return { jobs: pending.length };
}

// Returns a handler that logs "id sent started" and, if it takes time, "id" at its end. Each line is one write, which survives kill -9.
export function logged(path, ms) {
  const file = openSync(path, "a");
  return async (job) => {
    writeSync(file, `${job.id} ${job.sent} ${now()}\n`);
    if (ms > 0) {
      await sleep(ms);
      writeSync(file, `${job.id}\n`);
    }
  };
}

export const untilTerminated = () => new Promise((resolve) => process.on("SIGTERM", resolve));
