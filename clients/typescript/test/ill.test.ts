/** Tests of the client during and after faults of the server, with a faulty proxy in front of the real server at MILEPOST_URL. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, Problem, TimeoutError, Unreachable, Worker } from "../src/index.js";
import type { Handler, JobState, WorkerOptions } from "../src/index.js";
import "./hang.js";
import { IllServer } from "./ill.js";
import type { Fault } from "./ill.js";

const url = process.env["MILEPOST_URL"] ?? "http://127.0.0.1:7070";
const healthy = new Client(url);

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const began = Date.now(); Date.now() - began < 120_000; await sleep(20)) if (await holds()) return;
  throw new Error(`timed out waiting until: ${what}`);
}

/** Fixture: a faulty server, a queue, and functions that create and run jobs there. */
async function hospital(t: TestContext) {
  const [ill, queue] = [new IllServer(url), randomUUID()];
  const client = new Client(await ill.start(t));
  const work = (k: Handler, options: WorkerOptions = {}) => {
    // So long that no running worker loses its lease, even on a slow machine.
    const worker = new Worker(client, { k }, { queues: [queue], leaseMs: 60_000, waitMs: 300, log: () => {}, ...options });
    const running = worker.run();
    t.after(async () => {
      worker.stop();
      await running;
    });
    return { worker, running };
  };
  const create = async (more = {}) => (await healthy.create({ kind: "k", queue, ...more })).id;
  const registered = () => ill.answered("POST", "/v1/workers").length;
  return { ill, queue, client, work, create, registered };
}

async function ended(id: string, state: JobState = "succeeded") {
  await until(`${id} is ${state}`, async () => (await healthy.job(id)).state === state);
  const attempts = await healthy.ask<{ error_code?: string }[]>("GET", `/v1/jobs/${id}/attempts`);
  return { result: (await healthy.job(id)).result, codes: attempts.map((attempt) => attempt.error_code) };
}

test("a job is created once, even if the request is retried", async (t) => {
  const { ill, queue, client } = await hospital(t);
  ill.meets("POST", "/v1/jobs", "lose", { status: 408 }, { status: 429, retryAfter: 1 });
  const began = performance.now();
  const { id } = await client.create({ kind: "k", queue });
  assert.ok(performance.now() - began >= 200 + 400 + 1000);
  assert.deepEqual(ill.answered("POST", "/v1/jobs"), ["lost", 408, 429, 200]);
  for await (const job of healthy.jobs({ queue })) assert.equal(job.id, id);
});

for (const answer of ['{"status": "maintenance"}', '{"id": 1, "duplicate": false}', "[]"]) {
  test(`nothing is reported as created if the answer is ${answer}`, async (t) => {
    const { ill, queue, client } = await hospital(t);
    ill.meets("POST", "/v1/jobs", { status: 200, answer });
    await assert.rejects(client.create({ kind: "k", queue }), Unreachable);
    ill.meets("POST", "/v1/batches", { status: 200, answer });
    await assert.rejects(client.startBatch({ dag: "d" }), Unreachable);
  });
}

test("a redirect is not followed", async (t) => {
  const { ill, queue, client } = await hospital(t);
  ill.meets("POST", "/v1/jobs", { status: 301, location: "/v1/jobs" });
  await assert.rejects(client.create({ kind: "k", queue }), (error: Problem) => error.status === 301);
  assert.deepEqual(ill.asked.map(({ method }) => method), ["POST"]);
});

test("a permanently refused request is sent once", async (t) => {
  const { ill, queue, client } = await hospital(t);
  ill.meets("POST", "/v1/jobs", { status: 403 });
  await assert.rejects(client.create({ kind: "k", queue }), Problem);
  assert.deepEqual(ill.answered("POST", "/v1/jobs"), [403]);
});

test("a wait outlasts faults and ends in time", async (t) => {
  const { ill, client, create } = await hospital(t);
  const id = await create();
  await healthy.operate(id, "cancel");
  ill.meets("GET", id, { status: 503 }, "lose", { status: 503 });
  assert.equal((await client.wait(id, 120_000)).state, "canceled");
  ill.meets("GET", id, "hang", "hang");
  await assert.rejects(client.wait(id, 200), (error) => error instanceof TimeoutError && error.message.includes("does not answer"));
  await assert.rejects(client.wait(randomUUID(), 120_000), (error) => error instanceof Problem && error.status === 404);
});

for (const [isCanceled, words] of [
  [true, "the job was canceled"],
  [false, "the job was taken over, or an operator or another program had ended it"],
] as const) {
  test(`the log says that an end was ignored because ${words}`, async (t) => {
    const { ill, work, create } = await hospital(t);
    ill.meets("POST", "/finish", { status: 200, answer: '{"runs": ["fenced"]}' });
    const lines: string[] = [];
    work(async (job) => {
      if (isCanceled) await until("a stop is requested", () => job.signal.aborted);
    }, { leaseMs: 6000, log: (line) => void lines.push(line) });
    const id = await create();
    if (isCanceled) {
      await until("the job runs", async () => (await healthy.job(id)).state === "running");
      await healthy.operate(id, "cancel", { grace_ms: 60_000 });
    }
    await until("the line is logged", () => lines.includes(`job ${id} (k): the end of attempt 1 was ignored: ${words}`));
  });
}

test("an end that an open transaction holds is reported again", async (t) => {
  const { ill, work, create } = await hospital(t);
  const held = { status: 200, answer: '{"runs": ["held"]}' };
  ill.meets("POST", "/finish", held, held);
  work(() => "done");
  assert.deepEqual(await ended(await create()), { result: "done", codes: [undefined] });
  await until("the report of the end is answered", () => ill.answered("POST", "/finish").length === 3);
});

test("ends are reported in requests that the server accepts", async (t) => {
  const { ill, work, create, registered } = await hospital(t);
  const sizes = [17_000_000, ...Array<number>(24).fill(1_000_000)];
  let [returned, allReturned] = [0, () => {}];
  const all = new Promise<undefined>((resolve) => (allReturned = () => resolve(undefined)));
  ill.refuses = () => all;
  work((job) => {
    returned += 1;
    return "x".repeat(sizes[job.payload as number]!);
  }, { concurrency: sizes.length });
  const [large, ...ids] = await Promise.all(sizes.map((_, n) => create({ payload: n, max_attempts: 1 })));
  await until("all handlers have returned", () => returned === sizes.length);
  allReturned();
  for (const id of ids) assert.deepEqual((await ended(id)).codes, [undefined]);
  assert.deepEqual((await ended(large!, "failed")).codes, ["end_not_taken"]);
  assert.ok(ill.finished.every(({ jobs, bytes }) => jobs.length === 1 || bytes < 8 * 2 ** 20));
  assert.equal(registered(), 1);
});

test("an end that the server rejects fails only its run", async (t) => {
  const { ill, work, create, registered } = await hospital(t);
  const poison = await create({ max_attempts: 1 });
  let [refusals, returned, allReturned] = [0, 0, () => {}];
  const all = new Promise<void>((resolve) => (allReturned = resolve));
  ill.refuses = async (jobs) => {
    await all;
    // Refused in a report of all, of a half, of a quarter, and alone.
    return jobs.includes(poison) && (refusals += 1) <= 4 ? { status: 422 } : undefined;
  };
  work(() => void (returned += 1), { concurrency: 9 });
  const ids = await Promise.all(Array.from({ length: 8 }, () => create()));
  await until("all handlers have returned", () => returned === 9);
  allReturned();
  for (const id of ids) assert.deepEqual((await ended(id)).codes, [undefined]);
  assert.deepEqual((await ended(poison, "failed")).codes, ["end_not_taken"]);
  assert.equal(registered(), 1);
});

test("a place is occupied until the end of its run is reported", async (t) => {
  const { ill, work, create } = await hospital(t);
  const seen: number[] = [];
  let began = 0;
  ill.refuses = () => (seen.length < 4 && seen.push(began) ? { status: 503 } : undefined);
  work(() => void (began += 1), { concurrency: 1 });
  for (const id of await Promise.all([create(), create()])) await ended(id);
  assert.deepEqual(seen, [1, 1, 1, 1]);
});

test("held ends occupy no places and delay no other ends", async (t) => {
  const { ill, work, create, registered } = await hospital(t);
  const held = await Promise.all(Array.from({ length: 4 }, () => create()));
  held.forEach((id) => ill.held.add(id));
  const { worker, running } = work(() => {}, { concurrency: 2 });
  await until("all are held", () => held.every((id) => ill.finished.some(({ jobs }) => jobs.includes(id))));
  const others = await Promise.all(Array.from({ length: 6 }, () => create()));
  for (const id of others) await ended(id);
  for (const { jobs } of ill.finished) assert.ok(!jobs.some((id) => others.includes(id)) || !jobs.some((id) => held.includes(id)));
  let over = false;
  void running.then(() => (over = true));
  worker.stop();
  const reports = ill.finished.length;
  await until("the held ends are reported again", () => ill.finished.length > reports + 2);
  assert.equal(over, false);
  ill.held.clear();
  for (const id of held) assert.deepEqual((await ended(id)).codes, [undefined]);
  await running;
  assert.equal(registered(), 1);
});

test("many held ends occupy places and are reported in requests that the server accepts", async (t) => {
  const { ill, queue, work, registered } = await hospital(t);
  const created = await healthy.createMany(Array.from({ length: 2_700 }, () => ({ kind: "k", queue })));
  created.forEach(({ id }) => ill.held.add(id));
  work(() => {}, { concurrency: 600 });
  const reported = () => new Set(ill.finished.flatMap(({ jobs }) => jobs)).size;
  await until("2,000 ends are held, and more occupy the places", () => reported() >= 2_600);
  const reports = ill.finished.length;
  await until("the held ends are reported again", () => ill.finished.length > reports + 12);
  assert.equal(reported(), 2_600);
  ill.held.clear();
  await until("all have ended", async () => {
    let succeeded = 0;
    for await (const _ of healthy.jobs({ queue, state: "succeeded" })) succeeded += 1;
    return succeeded === created.length;
  });
  assert.ok(ill.finished.every(({ jobs }) => jobs.length <= 500));
  assert.equal(registered(), 1);
});

test("a success is reported until the server accepts it", async (t) => {
  const { ill, work, create } = await hospital(t);
  ill.meets("POST", "/finish", { status: 503 }, { status: 429, retryAfter: 1 }, { status: 500 }, { status: 408 }, "lose");
  work(() => "done");
  assert.deepEqual(await ended(await create()), { result: "done", codes: [undefined] });
  await until("the report of the end is answered", () => ill.answered("POST", "/finish").at(-1) === 200);
});

const shapes: Fault[] = ["{}", "null", '{"jobs": {}, "runs": {}, "stops": {}}'].map((answer) => ({ status: 201, answer }));

for (const verb of ["/claim", "/finish", "/heartbeat", "/v1/workers"]) {
  test(`a request to ${verb} is retried after a malformed response`, async (t) => {
    const { ill, work, create } = await hospital(t);
    ill.meets("POST", verb, ...shapes);
    const heard = () => ill.answered("POST", verb).length > shapes.length;
    work(async (job) => {
      if (verb === "/heartbeat") await until("the lease is renewed", heard);
      return job.attempt;
    }, { leaseMs: 30_000 });
    assert.deepEqual(await ended(await create()), { result: 1, codes: [undefined] });
    await until("the request is answered correctly", heard);
  });
}

test("a response that never arrives does not lose the lease", async (t) => {
  const { ill, work, create, registered } = await hospital(t);
  ill.meets("POST", "/finish", "hang");
  work((job) => job.attempt, { leaseMs: 30_000 });
  assert.equal((await ended(await create())).result, 1);
  await until("the report of the end is answered", () => ill.answered("POST", "/finish").join() === "hangs,200");
  assert.equal(registered(), 1);
});

test("a job whose end cannot be reported is retried", async (t) => {
  const { ill, work, create } = await hospital(t);
  // The path of the worker that reports the first end. On a busy machine this may not be the worker that registered first.
  let refused: string | undefined;
  ill.fault = (_, path) => (path.endsWith("/finish") && path === (refused ??= path) ? { status: 503 } : undefined);
  work((job) => job.attempt, { leaseMs: 2000 });
  assert.ok(Number((await ended(await create())).result) >= 2);
});

test("a lost lease does not cancel the job", async (t) => {
  const { ill, work, create } = await hospital(t);
  // The worker that runs the job first. On a busy machine this may not be the worker that registered first, nor the first attempt.
  let lost: string | undefined;
  ill.fault = (_, path) => (lost !== undefined && path === lost ? "deny" : undefined);
  const reasons: unknown[] = [];
  work(async (job) => {
    if (lost === undefined) {
      lost = ill.asked.filter((asked) => asked.path.endsWith("/claim")).at(-1)!.path.replace("/claim", "/heartbeat");
      await sleep(600_000, undefined, { signal: job.signal }).finally(() => reasons.push(job.signal.reason));
    }
    return job.attempt;
  }, { leaseMs: 2000 });
  // On a busy machine, a lease may be lost once more.
  assert.ok(Number((await ended(await create())).result) >= 2);
  assert.deepEqual(reasons, ["lost"]);
});

test("a lease whose duration is not divisible by three is renewed", async (t) => {
  const { ill, work, create } = await hospital(t);
  const beats = () => ill.answered("POST", "/heartbeat").filter((status) => status === 200).length;
  work(async (job) => {
    await until("the lease is renewed five times", () => beats() > 4);
    return job.attempt;
  }, { leaseMs: 10_000 });
  assert.equal((await ended(await create())).result, 1);
});

test("a worker that was declared dead registers once again, even if the request is retried", async (t) => {
  const { ill, work, create } = await hospital(t);
  work(() => "done");
  await until("the worker claims", () => ill.answered("POST", "/claim").length > 0);
  ill.meets("POST", "/v1/workers", { status: 503 }, { status: 429, retryAfter: 1 });
  const { path } = ill.asked.find((asked) => asked.path.endsWith("/claim"))!;
  await healthy.ask("DELETE", path.replace("/claim", ""));
  await ended(await create());
  assert.deepEqual(ill.answered("POST", "/v1/workers"), [201, 503, 429, 201]);
});

test("a worker that is not allowed to register fails", async (t) => {
  const { ill, client } = await hospital(t);
  ill.meets("POST", "/v1/workers", { status: 503 }, { status: 401 });
  await assert.rejects(new Worker(client, { k: () => {} }, { log: () => {} }).run(), (error) => error instanceof Problem && error.status === 401);
});

for (const [fault, said] of [["lose", "was lost"], ["deny", "was a refusal"]] as const) {
  test(`a claimed job is run even if the response to the claim ${said}`, async (t) => {
    const { ill, work, create } = await hospital(t);
    const id = await create();
    const left: Record<string, Fault[]> = { "/claim": [fault], "/jobs": [undefined, { status: 503 }, "lose"] };
    ill.fault = (_, path) => Object.entries(left).find(([end, faults]) => path.endsWith(end) && faults.length > 0)?.[1].shift();
    work((job) => job.attempt);
    assert.equal((await ended(id)).result, 1);
    assert.deepEqual(left, { "/claim": [], "/jobs": [] });
  });
}

test("an attempt that exceeds its time limit fails and keeps its concurrency slot", async (t) => {
  const { ill, work, create } = await hospital(t);
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  t.after(() => letGo());
  const seen: unknown[] = [];
  work(async (job) => {
    if (job.timeoutMs !== undefined) await held;
    seen.push([job.timeoutMs, job.signal.reason]);
    return "too late";
  }, { leaseMs: 15_000, concurrency: 1 });
  const late = await create({ timeout_ms: 300, max_attempts: 1 });
  assert.deepEqual((await ended(late, "failed")).codes, ["timeout"]);
  const other = await create();
  const [claims, beats] = [ill.answered("POST", "/claim").length, ill.answered("POST", "/heartbeat").length];
  await until("the worker sends more heartbeats", () => ill.answered("POST", "/heartbeat").length > beats + 1);
  assert.equal(ill.answered("POST", "/claim").length, claims);
  letGo();
  await ended(other);
  assert.deepEqual(seen, [[300, "timeout"], [undefined, undefined]]);
  assert.equal((await healthy.job(late)).state, "failed");
});
