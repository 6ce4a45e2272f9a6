/** Tests of the client against the real server at MILEPOST_URL. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, Failed, Milepost, Problem, Snooze, TimeoutError, Unreachable, Worker } from "../src/index.js";
import type { Handler, Job, Json, JobState, JobView, WorkerOptions } from "../src/index.js";
import "./hang.js";

const url = process.env["MILEPOST_URL"] ?? "http://127.0.0.1:7070";
const client = new Client(url);

async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const began = Date.now(); Date.now() - began < 120_000; await sleep(20)) {
    const answer = await ask();
    if (answer !== undefined) return answer;
  }
  throw new Error(`timed out waiting until: ${what}`);
}

/** Starts a worker on a new queue. Returns a function that creates jobs for it. */
function work(t: TestContext, handlers: Record<string, Handler>, concurrency = 4, leaseMs = 60_000, more: WorkerOptions = {}) {
  const queue = randomUUID();
  const worker = new Worker(client, handlers, { queues: [queue], leaseMs, waitMs: 300, concurrency, ...more });
  const running = worker.run();
  t.after(async () => {
    worker.stop();
    await running;
  });
  return async (kind: string, payload: Json = null, more = {}) => (await client.create({ kind, payload, queue, ...more })).id;
}

async function ended(id: string, state: JobState = "succeeded"): Promise<JobView> {
  return await until(`${id} is ${state}`, async () => {
    const view = await client.job(id);
    return view.state === state ? view : undefined;
  });
}

async function codes(id: string): Promise<(string | undefined)[]> {
  const attempts = await client.ask<{ error_code?: string }[]>("GET", `/v1/jobs/${id}/attempts`);
  return attempts.map((attempt) => attempt.error_code);
}

test("a batch is started once per key, for its nominal day", async () => {
  const [dag, key] = [randomUUID(), randomUUID()];
  await client.ask("POST", "/v1/dags", { name: dag, tasks: { a: { kind: dag, payload: "${ input.n } on ${ tick.date }" } } });
  const batch = { dag, key, input: { n: 7 }, nominal_at: new Date("2026-11-21T23:30:00Z"), nominal_zone: "Europe/Berlin" };
  const first = await client.startBatch(batch);
  const again = await client.startBatch(batch);
  assert.deepEqual([again.id, first.duplicate, again.duplicate], [first.id, false, true]);
  for await (const job of client.jobs({ kind: dag })) assert.equal((await client.job(job.id)).payload, "7 on 2026-11-22");
  assert.notEqual((await client.startBatch({ dag, input: { n: 8 }, nominal_at: batch.nominal_at })).id, first.id);
});

test("a job is created once per key", async () => {
  const key = randomUUID();
  const first = await client.create({ kind: "mail", payload: { to: "ada" }, key });
  const again = await client.create({ kind: "mail", payload: { to: "ada" }, key });
  assert.deepEqual([again.id, first.duplicate, again.duplicate], [first.id, false, true]);
  assert.deepEqual((await client.job(first.id)).payload, { to: "ada" });
  const replaced = await client.create({ kind: "mail", payload: { to: "eve" }, key, on_duplicate: { action: "replace" } });
  assert.deepEqual([replaced.id, replaced.duplicate, replaced.outcome], [first.id, true, "replaced"]);
  assert.deepEqual((await client.job(first.id)).payload, { to: "eve" });
});

test("many jobs are created and listed", async () => {
  const kind = randomUUID();
  const created = await client.createMany(Array.from({ length: 120 }, (_, n) => ({ kind, payload: n })));
  const listed = new Set<string>();
  for await (const job of client.jobs({ kind })) listed.add(job.id);
  assert.deepEqual(listed, new Set(created.map((job) => job.id)));
});

test("refused requests, unreachable servers and invalid URLs are reported", async () => {
  await assert.rejects(client.create({ kind: "" }), (error) => error instanceof Problem && error.status === 422 && error.code === "invalid_job");
  await assert.rejects(new Client("http://127.0.0.1:9").ask("GET", "/v1/jobs"), Unreachable);
  assert.throws(() => new Client("127.0.0.1:7070"), TypeError);
  assert.throws(() => new Client("http://ada:secret@127.0.0.1:7070"), ({ message }: Error) => !message.includes("secret"));
});

test("dates are accepted as times, and invalid ones are refused", async () => {
  const start_at = new Date(Date.now() + 365 * 86_400_000);
  const { id } = await client.create({ kind: "k", start_at });
  assert.deepEqual(new Date((await client.job(id)).ready_at!), start_at);
  const kind = randomUUID();
  await client.createMany([{ kind, start_at }]);
  const count = async (ahead: number) => {
    let jobs = 0;
    for await (const job of client.jobs({ kind, created_from: new Date(Date.now() + ahead) })) jobs += Number(job.kind === kind);
    return jobs;
  };
  assert.deepEqual([await count(-3_600_000), await count(3_600_000)], [1, 0]);
  const invalid = new Date(NaN);
  const refused = (name: string) => (error: unknown) => error instanceof RangeError && error.message === `${name} is not a valid date`;
  await assert.rejects(client.create({ kind, start_at: invalid }), refused("start_at"));
  await assert.rejects(client.createMany([{ kind, start_at: invalid }]), refused("start_at"));
  await assert.rejects(client.startBatch({ dag: "d", nominal_at: invalid }), refused("nominal_at"));
  await assert.rejects(client.jobs({ created_before: invalid }).next(), refused("created_before"));
});

test("values that would become others are refused before they are sent", async () => {
  const statements: string[] = [];
  const milepost = new Milepost(async (sql) => { statements.push(sql); return [{ id: "", duplicate: false }]; });
  for (const delay_ms of [NaN, Infinity]) {
    const refused = { name: "RangeError", message: `delay_ms is not a number that can be sent: ${delay_ms}` };
    await assert.rejects(client.create({ kind: "k", delay_ms }), refused);
    await assert.rejects(client.createMany([{ kind: "k", delay_ms }]), refused);
  }
  await assert.rejects(milepost.enqueue({ kind: "k", delay_ms: NaN }), { message: "delays_ms is not a number that can be sent: NaN" });
  for (const start_at of ["2999-12-31T10:00:00", "2999-12-31"]) {
    await assert.rejects(milepost.enqueue({ kind: "k", start_at }), (error: Error) => error.message.startsWith(`run_ats has no time zone: "${start_at}"`));
  }
  assert.deepEqual(statements, []);
  for (const start_at of ["2999-12-31T10:00:00Z", "2999-12-31 10:00:00.5+01:00"]) await milepost.enqueue({ kind: "k", start_at });
  assert.equal(statements.length, 2);
});

test("a handler receives the settings of its job", async (t) => {
  const seen: Job[] = [];
  const create = work(t, { k: (job) => void seen.push(job) });
  const group = randomUUID();
  const view = await ended(await create("k", 1, { group, max_attempts: 3 }));
  const [job] = seen;
  assert.deepEqual([job!.id, job!.queue, job!.group, job!.batch, job!.maxAttempts], [view.id, view.queue, group, undefined, 3]);
  assert.deepEqual([job!.createdAt, job!.nominalAt], [new Date(view.created_at), undefined]);
  assert.equal(job!.runToken, view.token);
});

test("a task receives its batch and the nominal time", async (t) => {
  const [name, queue, seen] = [randomUUID(), randomUUID(), [] as Job[]];
  await client.ask("POST", "/v1/dags", { name, tasks: { a: { kind: name, queue } } });
  const nominal_at = new Date("2026-11-21T23:30:00Z");
  const batch = await client.startBatch({ dag: name, nominal_at });
  work(t, { [name]: (job) => void seen.push(job) }, 4, 60_000, { queues: [queue] });
  const job = await until("the task runs", async () => seen[0]);
  assert.deepEqual([job.batch, job.nominalAt], [batch.id, nominal_at]);
});

test("the end of a job is waited for", async (t) => {
  const create = work(t, { good: () => "done", bad: () => { throw new Error("no"); } });
  assert.equal((await client.wait(await create("good"), 120_000)).result, "done");
  assert.equal((await client.wait(await create("bad", null, { max_attempts: 1 }), 120_000)).state, "failed");
  const other = await create("other");
  const late = new TimeoutError(`job ${other} has not ended within 2500 ms: its state is pending`);
  await assert.rejects(client.wait(other, 2500), (error: Error) => error instanceof TimeoutError && error.message === late.message);
});

test("a failed attempt is logged with its message and what follows", async (t) => {
  const thrown = [new Failed("refused", { code: "http_403", retryable: false }), new RangeError("no mail server")];
  const lines: string[] = [];
  const queue = randomUUID();
  const options = { queues: [queue], name: "w", log: (line: string) => void lines.push(line) };
  work(t, { k: (job) => { throw thrown[Number(job.payload !== "secret")]; }, big: () => 1n as unknown as Json }, 4, 60_000, options);
  for (const [kind, payload, max_attempts, words] of [
    ["k", "secret", 25, "attempt 1 of 25 failed; no attempt follows: http_403: refused"],
    ["k", null, 2, "attempt 1 of 2 failed; another attempt follows: RangeError: no mail server\n    at "],
    ["k", null, 1, "attempt 1 of 1 failed; no attempt follows: RangeError: no mail server\n    at "],
    ["big", null, 1, "attempt 1 of 1 failed; no attempt follows: end_not_taken: the result is not JSON: TypeError: "],
  ] as const) {
    const { id } = await client.create({ kind, payload, max_attempts, queue });
    const line = await until("the failure is logged", async () => lines.find((line) => line.includes(id)));
    assert.ok(line.startsWith(`job ${id} (${kind}): ${words}`), line);
  }
  assert.equal(lines[0], `worker w is registered at ${url}; queues: ${queue}; kinds: k, big`);
  assert.ok(!lines.join().includes("secret"));
});

test("handlers run jobs, and their results are stored", async (t) => {
  const create = work(t, { double: (job) => Number(job.payload) * 2 }, 8);
  const ids = await Promise.all(Array.from({ length: 50 }, (_, n) => create("double", n)));
  for (const [n, id] of ids.entries()) assert.equal((await ended(id)).result, 2 * n);
});

test("a failure is reported, and the job is retried from its checkpoint", async (t) => {
  const create = work(t, {
    k: async (job) => {
      if (job.checkpoint !== undefined && job.checkpoint !== null) return (job.checkpoint as { row: number }).row;
      await job.report({ done: 1, total: 2, message: "half", checkpoint: { row: 17 } });
      throw new Failed("not yet", { code: "not_yet", delayMs: 3_600_000 });
    },
  });
  const id = await create("k");
  await ended(id, "retry_wait");
  await client.operate(id, "retry");
  assert.equal((await ended(id)).result, 17);
  assert.deepEqual(await codes(id), ["not_yet", undefined]);
});

test("a kind has the backoff that its worker states", async (t) => {
  const later = () => { throw new Failed("not yet", { delayMs: 1000 }); };
  const backoffs = { slow: { baseMs: 7_200_000, capMs: 7_200_000, jitter: 0 } }; // Longer than the default, which is at most an hour.
  const create = work(t, { slow: later, usual: later }, 4, 60_000, { backoffs });
  const began = Date.now();
  const waitMs = async (kind: string) => Date.parse((await ended(await create(kind), "retry_wait")).ready_at!) - began;
  assert.ok((await waitMs("slow")) >= 7_200_000);
  assert.ok((await waitMs("usual")) < 3_600_000);
});

test("a backoff that contradicts itself is refused", async () => {
  const worker = new Worker(client, { k: () => null }, { backoffs: { k: { baseMs: 2, capMs: 1 } } });
  await assert.rejects(worker.run(), (error: unknown) => error instanceof Problem && error.code === "invalid_backoff" && error.at === "backoffs.k");
});

test("an error fails the attempt, with the name of the error as its code", async (t) => {
  const create = work(t, { k: () => { throw new RangeError("no"); } });
  const id = await create("k", null, { max_attempts: 1 });
  await ended(id, "failed");
  assert.deepEqual(await codes(id), ["RangeError"]);
});

test("half a surrogate pair in an error keeps its code and its delay", async (t) => {
  const half = "\ud83d";
  const thrown = [
    new Failed(`no ${half}`, { code: "not_yet", delayMs: 3_600_000 }),
    Object.assign(new Error(), { stack: "x".repeat(1999) + "\u{1f600}" }), // Cut in the middle of a pair.
    new Snooze(3_600_000, `later ${half}`),
  ];
  const create = work(t, { k: (job) => { throw thrown[job.payload as number]; } });
  const states: JobState[] = ["retry_wait", "retry_wait", "pending"];
  const ids = await Promise.all(thrown.map((_, n) => create("k", n)));
  for (const [n, id] of ids.entries()) await ended(id, states[n]!);
  assert.deepEqual(await codes(ids[0]!), ["not_yet"]);
  // On a slow machine the next attempt may have begun.
  assert.equal((await codes(ids[1]!))[0], "Error");
});

test("a value without a text fails the attempt, and the worker continues", async (t) => {
  const revoked = Proxy.revocable(new Error("no"), {});
  revoked.revoke();
  const thrown = [Object.create(null), Object.assign(new Error("no"), { stack: {} }), Symbol("no"), revoked.proxy];
  const create = work(t, { k: (job) => { throw thrown[job.payload as number]; } });
  for (const n of thrown.keys()) await ended(await create("k", n, { max_attempts: 1 }), "failed");
});

test("an error with parts of wrong types ends its attempt", async (t) => {
  const odd = (message: unknown, options?: unknown) => new Failed(message as string, options as { code: string });
  const cases: [Error, string][] = [
    [odd("no", null), "failed"],
    [odd(undefined, { code: 404 }), "404"],
    [odd("no", { code: null }), "failed"],
    [odd("no", { code: "" }), "failed"],
    [odd("no", { code: Object.create(null) }), "Failed"],
    [odd("no", { code: "odd", retryable: "no" }), "odd"],
    [odd("no", { code: "late", delayMs: 1e30 }), "late"],
    [odd("no", { code: "late", delayMs: Infinity }), "late"],
    [odd("x".repeat(17_000_000), { code: "long".repeat(1_000_000) }), "long".repeat(50)],
    [new Snooze(NaN), "Snooze"],
  ];
  const create = work(t, { k: (job) => { throw cases[job.payload as number]![0]; } }, 10);
  for (const [n, [, code]] of cases.entries()) {
    const id = await create("k", n, { max_attempts: 1 });
    await ended(id, "failed");
    assert.deepEqual(await codes(id), [code]);
  }
});

test("a result whose encoding throws any error fails only its attempt", async (t) => {
  const thrown = [new RangeError("no"), new Unreachable("no"), new Problem(503, "store_unavailable", "no"), Object.create(null), new Snooze(1)];
  const create = work(t, { k: (job) => ({ toJSON: () => { throw thrown[job.payload as number]; } }) as unknown as Json });
  for (const n of thrown.keys()) {
    const id = await create("k", n, { max_attempts: 1 });
    await ended(id, "failed");
    assert.deepEqual(await codes(id), ["end_not_taken"]);
  }
});

test("more places than a claim can ask for are used", async (t) => {
  const create = work(t, { k: () => {} }, 600);
  await ended(await create("k"));
});

test("delays are rounded to whole milliseconds", async (t) => {
  let runs = 0;
  const create = work(t, {
    k: () => {
      runs += 1;
      if (runs === 1) throw new Snooze(12.5, "later");
      if (runs === 2) throw new Failed("again", { code: "again", delayMs: 7.25 });
    },
  });
  const id = await create("k", null, { max_attempts: 2 });
  await ended(id);
  assert.deepEqual((await codes(id)).filter((code) => code !== undefined), ["again"]);
});

test("a snooze does not use an attempt", async (t) => {
  const seen: number[] = [];
  const create = work(t, {
    k: (job) => {
      seen.push(job.attempt);
      if (seen.length === 1) throw new Snooze(50, "later");
    },
  });
  await ended(await create("k", null, { max_attempts: 1 }));
  assert.deepEqual(seen, [1, 1]);
});

test("a worker stops when its signal is aborted, also if it was before", async () => {
  const [stop, lines] = [new AbortController(), [] as string[]];
  const options = { queues: [randomUUID()], name: "w", waitMs: 300, log: (line: string) => void lines.push(line) };
  const running = new Worker(client, { k: () => {} }, options).run({ signal: stop.signal });
  await until("the worker is registered", async () => lines[0]);
  stop.abort();
  await running;
  assert.deepEqual([lines.length, lines[1]], [2, "worker w has stopped"]);
  await new Worker(client, { k: () => {} }, options).run({ signal: stop.signal });
  assert.deepEqual(lines.slice(2), ["worker w has stopped"]);
});

test("a running job is canceled", async (t) => {
  const create = work(t, {
    k: async (job) => {
      await sleep(600_000, undefined, { signal: job.signal });
    },
  }, 4, 6000); // Heartbeats, which report the cancel, are sent three times per lease.
  const id = await create("k");
  await ended(id, "running");
  assert.equal(await client.operate(id, "cancel", { grace_ms: 600_000 }), "stop_requested");
  await ended(id, "canceled");
});

test("a handler that returns after a request to stop has succeeded", async (t) => {
  const create = work(t, {
    k: async (job) => {
      await until("a stop is requested", async () => job.signal.aborted || undefined);
      return "done";
    },
  }, 4, 6000);
  const id = await create("k");
  await ended(id, "running");
  await client.operate(id, "cancel", { grace_ms: 600_000 });
  assert.equal((await ended(id)).result, "done");
});

test("a result that is not valid JSON fails the attempt", async (t) => {
  const create = work(t, { k: () => 1n as unknown as Json });
  const id = await create("k", null, { max_attempts: 1 });
  await ended(id, "failed");
  assert.deepEqual(await codes(id), ["end_not_taken"]);
});
