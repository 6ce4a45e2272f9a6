/** Tests of the adapters, each against the database MILEPOST_STORE and the server MILEPOST_URL of the same store. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, Fenced, MilepostError, sqlstateOf, TransactionConflict, Worker } from "@milepost/client";
import type { EnqueuedJob, Job, JobState, JobView, Milepost, NewEvent, ReceivedEvent } from "@milepost/client";
import pg from "pg";

import { registerBulkJobs } from "./bulk-jobs.js";
import { libraries, store } from "./libraries.js";
import type { Library } from "./libraries.js";
import { refusals } from "./refusals.js";

const client = new Client(process.env["MILEPOST_URL"]);
const pool = new pg.Pool({ connectionString: store });

before(async () => {
  await pool.query("create table if not exists client_invoice (id serial primary key, test text not null, library text not null)");
  await registerBulkJobs(client, store);
});
after(() => pool.end());

/** Defines a test for each library. */
function onEach(what: string, run: (t: TestContext, library: Library, name: string) => Promise<void>): void {
  for (const [name, open] of Object.entries(libraries)) {
    test(`${name}: ${what}`, async (t) => {
      const library = open();
      t.after(() => library.close());
      await run(t, library, name);
    });
  }
}

async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const began = Date.now(); Date.now() - began < 60_000; await sleep(20)) {
    const answer = await ask();
    if (answer !== undefined) return answer;
  }
  throw new Error(`timed out waiting until: ${what}`);
}

async function ended(id: string, state: JobState = "succeeded"): Promise<JobView> {
  return await until(`${id} is ${state}`, async () => {
    const view = await client.job(id);
    return view.state === state ? view : undefined;
  });
}

async function countOf(test: string): Promise<number> {
  return (await pool.query("select from client_invoice where test = $1", [test])).rowCount ?? 0;
}

async function jobsOf(queue: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const job of client.jobs({ queue })) ids.push(job.id);
  return ids;
}

class Undo extends Error {}

/** Runs a transaction that is rolled back at its end. */
async function undone(library: Library, run: (milepost: Milepost) => Promise<unknown>): Promise<void> {
  const rolledBack = library.transaction(async ({ milepost }) => {
    await run(milepost);
    throw new Undo();
  });
  await assert.rejects(rolledBack, Undo);
}

onEach("a job and a row are stored together, or neither", async (_t, library, name) => {
  const queue = randomUUID();
  await assert.rejects(library.transaction(async ({ milepost, insert }) => {
    await insert({ test: queue, library: name });
    await milepost.enqueue({ kind: "mail", queue });
    throw new Undo();
  }), Undo);
  assert.deepEqual([await countOf(queue), await jobsOf(queue)], [0, []]);
  const { id, duplicate } = await library.transaction(async ({ milepost, insert }) => {
    await insert({ test: queue, library: name });
    return await milepost.enqueue({ kind: "mail", queue });
  });
  assert.deepEqual([await countOf(queue), await jobsOf(queue), duplicate], [1, [id], false]);
});

onEach("a job has the settings with which it is enqueued", async (_t, library) => {
  const queue = randomUUID();
  const start_at = new Date(Date.now() + 3_600_000);
  const job = { kind: 'a "kind", {of} \\jobs', queue, key: `k?1 $1 :a 'ü' ${queue}`, group: `{g},${queue}`, priority: 3, max_attempts: 7, timeout_ms: 5000, start_at };
  const payload = { text: 'a "b" \\ \n {c},\u{1f600} NULL', list: [1, null, { deep: [true] }], null: null };
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const id = "0199c6f0-7a1e-7c3b-9d43-" + queue.slice(-12);
  const made = await library.transaction(({ milepost }) => milepost.enqueue({ ...job, payload, id, traceparent }));
  assert.deepEqual(made, { id, duplicate: false });
  const view = await client.job(id);
  const { kind, key, group, priority, max_attempts, waiting_for } = view;
  const { rows: [{ timeout_ms }] } = await pool.query("select cast(timeout_ms as int) from milepost.job where id = $1", [id]);
  assert.deepEqual({ kind, queue: view.queue, key, group, priority, max_attempts, timeout_ms, start_at: new Date(waiting_for!["until"] as string) }, job);
  assert.deepEqual([view.payload, view.traceparent], [payload, traceparent]);
});

onEach("jobs are enqueued in order, and once per key", async (_t, library) => {
  const queue = randomUUID();
  const jobs: EnqueuedJob[] = [{ kind: "k", key: `1 ${queue}`, payload: 1 }, { kind: "k", payload: null }, { kind: "k", key: `3 ${queue}` }, { kind: "k", delay_ms: 3_600_000 }];
  const of = (some: EnqueuedJob[]) => library.transaction(({ milepost }) => milepost.enqueueMany(some.map((job) => ({ queue, ...job }))));
  const first = await of(jobs);
  const again = await of([jobs[2]!, { kind: "k" }, jobs[0]!]);
  assert.deepEqual(again.map(({ duplicate }) => duplicate), [true, false, true]);
  assert.deepEqual([again[0]!.id, again[2]!.id], [first[2]!.id, first[0]!.id]);
  const views = await Promise.all(first.map(({ id }) => client.job(id)));
  assert.deepEqual(views.map(({ payload }) => payload), [1, null, {}, {}]);
  assert.ok(Date.parse(views[3]!.ready_at!) > Date.now() + 3_000_000);
  assert.deepEqual(await library.without.enqueueMany([]), []);
  const replaced = await of([{ ...jobs[0]!, payload: 9, on_duplicate: { action: "replace" } }, { kind: "k" }]);
  assert.deepEqual(replaced.map(({ duplicate, outcome }) => [duplicate, outcome]), [[true, "replaced"], [false, "created"]]);
  assert.deepEqual([replaced[0]!.id, (await client.job(first[0]!.id)).payload], [first[0]!.id, 9]);
});

onEach("a job is canceled with the transaction", async (_t, library) => {
  const { id } = await library.without.enqueue({ kind: "k", queue: randomUUID() });
  await undone(library, (milepost) => milepost.cancel(id));
  assert.equal((await client.job(id)).state, "pending");
  assert.equal(await library.transaction(({ milepost }) => milepost.cancel(id, { reason: "the customer called" })), "canceled");
  assert.equal((await client.job(id)).state, "canceled");
});

onEach("events are numbered in order, and emitted once per id", async (_t, library) => {
  const aggregate = { aggregate_type: "order", aggregate_id: randomUUID() };
  const paid: NewEvent = { ...aggregate, event_type: "order.paid", payload: { cents: 1200, note: 'a "b" \\' }, headers: { tenant: "acme" } };
  await undone(library, (milepost) => milepost.emit(paid));
  const one = await library.transaction(({ milepost }) => milepost.emit({ ...paid, event_id: randomUUID() }));
  const many = await library.transaction(({ milepost }) =>
    milepost.emitMany([{ ...paid, event_id: one.event_id }, { ...aggregate, event_type: "order.sent", aggregate_seq: 2 }, { ...aggregate, event_type: "a", aggregate_seq: 5, gap_allowed: true }]));
  assert.deepEqual(many[0], { ...one, duplicate: true });
  assert.deepEqual([one, ...many].map(({ aggregate_seq, duplicate }) => [aggregate_seq, duplicate]), [[1, false], [1, true], [2, false], [5, false]]);
  const query = new URLSearchParams(aggregate);
  const { items } = await client.ask<{ items: NewEvent[] }>("GET", `/v1/events?${query}`);
  const first = items.find(({ aggregate_seq }) => aggregate_seq === 1)!;
  assert.deepEqual([items.length, first.payload, first.headers], [3, paid.payload, paid.headers]);
});

onEach("an event counts as received only if its transaction commits", async (_t, library) => {
  const [consumer, id] = [randomUUID(), randomUUID()];
  await undone(library, async (milepost) => assert.equal(await milepost.once(consumer, id), true));
  assert.equal(await library.transaction(({ milepost }) => milepost.once(consumer, id)), true);
  assert.equal(await library.transaction(({ milepost }) => milepost.once(consumer, id)), false);
});

onEach("events are received in order", async (_t, library) => {
  const [consumer, aggregate_id] = [randomUUID(), randomUUID()];
  const event = (aggregate_seq: number): ReceivedEvent => ({
    aggregate_type: "order", aggregate_id, aggregate_seq, event_id: randomUUID(), event_type: "order.paid",
    payload: { n: aggregate_seq, text: 'a "b" \\' }, headers: { tenant: "acme" }, emitted_at: "2026-05-01T10:15:00.123Z",
  });
  const [one, two, three] = [event(1), event(2), event(3)];
  const receive = (which: ReceivedEvent) => library.transaction(({ milepost }) => milepost.receive(consumer, which));
  await undone(library, (milepost) => milepost.receive(consumer, one));
  assert.deepEqual(await receive(three), { verdict: "parked", more: false });
  assert.deepEqual(await receive({ ...two, emitted_at: new Date("2026-05-01T10:15:00.123Z") }), { verdict: "parked", more: false });
  const taken: (ReceivedEvent | undefined)[] = [];
  await library.transaction(async ({ milepost }) => {
    assert.deepEqual(await milepost.receive(consumer, one), { verdict: "apply", more: true });
    for (let n = 0; n < 3; n += 1) taken.push(await milepost.nextParked(consumer, "order", aggregate_id));
  });
  const withTime = (which: ReceivedEvent) => ({ ...which, emitted_at: new Date(which.emitted_at!) });
  assert.deepEqual(taken.map((which) => which && withTime(which)), [withTime(two), withTime(three), undefined]);
  assert.deepEqual(await receive(one), { verdict: "duplicate", more: false });
});

onEach("a batch is started once per key, with its version and tick", async (_t, library) => {
  const dag = randomUUID();
  const tasks = { a: { kind: dag, payload: "${ input.n } on ${ tick.date }" } };
  const input_schema = { type: "object", required: ["n"] };
  const { version } = await client.ask<{ version: string }>("POST", "/v1/dags", { name: dag, tasks, input_schema });
  const batch = { dag, key: "k", input: { n: 7 }, nominal_at: new Date("2026-11-21T23:30:00Z"), nominal_zone: "Europe/Berlin", input_checked: true };
  await undone(library, (milepost) => milepost.startBatch(batch));
  const first = await library.transaction(({ milepost }) => milepost.startBatch({ ...batch, version: version.slice(0, 12) }));
  const again = await library.transaction(({ milepost }) => milepost.startBatch(batch));
  assert.deepEqual([again.id, first.duplicate, again.duplicate], [first.id, false, true]);
  const [id] = await until("the task has a job", async () => {
    const ids: string[] = [];
    for await (const job of client.jobs({ kind: dag })) ids.push(job.id);
    return ids.length > 0 ? ids : undefined;
  });
  assert.equal((await client.job(id!)).payload, "7 on 2026-11-22");
});

onEach("a run of a bulk job is started once per key", async (_t, library) => {
  const run = { name: "client_notify", key: randomUUID(), parameters: { place: "Bern" }, start_at: new Date(Date.now() + 3_600_000), priority: 2 };
  await undone(library, (milepost) => milepost.startBulk(run));
  const first = await library.transaction(({ milepost }) => milepost.startBulk(run));
  const again = await library.transaction(({ milepost }) => milepost.startBulk(run));
  assert.deepEqual([again.id, first.duplicate, again.duplicate], [first.id, false, true]);
  const { kind, priority, payload } = await client.job(first.id);
  assert.deepEqual({ kind, priority, payload }, { kind: "client_notify", priority: 2, payload: { place: "Bern" } });
});

/** Starts a worker on a new queue, and enqueues a job for it. */
async function runs(t: TestContext, library: Library, handler: (job: Job) => Promise<void>): Promise<string> {
  const queue = randomUUID();
  const { id } = await library.without.enqueue({ kind: "k", queue, max_attempts: 2 });
  const stop = new AbortController();
  const backoffs = { k: { baseMs: 1, capMs: 1, jitter: 0 } };
  const running = new Worker(client, { k: handler }, { queues: [queue], waitMs: 300, leaseMs: 6000, log: () => {}, backoffs }).run({ signal: stop.signal });
  t.after(async () => {
    stop.abort();
    await running;
  });
  return id;
}

onEach("a handler ends its job in the transaction of its effects: both are stored, or neither", async (t, library, name) => {
  const test = randomUUID();
  const id = await runs(t, library, async (job) => {
    await library.transaction(async ({ milepost, insert }) => {
      await insert({ test, library: name });
      await milepost.complete(job, { attempt: job.attempt });
      if (job.attempt === 1) throw new Error("the first attempt fails before its commit");
    });
  });
  assert.deepEqual((await ended(id)).result, { attempt: 2 });
  assert.equal(await countOf(test), 1);
});

onEach("a handler that has lost its job stores nothing", async (t, library, name) => {
  const test = randomUUID();
  let thrown: unknown;
  const id = await runs(t, library, async (job) => {
    await client.operate(job.id, "cancel", { grace_ms: 0 });
    await ended(job.id, "canceled");
    thrown = await library.transaction(async ({ milepost, insert }) => {
      await insert({ test, library: name });
      await milepost.complete(job, "late");
    }).catch((error: unknown) => error);
  });
  const error = await until("the transaction is rolled back", async () => thrown);
  assert.ok(error instanceof Fenced && error.message.startsWith(`job ${id} no longer runs with run token 1`), String(error));
  assert.equal(await countOf(test), 0);
});

onEach("a refused call has an error of its SQLSTATE, without the statement and its parameters", async (_t, library) => {
  for (const { call, of, code, message, detail, hint } of await refusals(client)) {
    const error = await library.transaction(({ milepost }) => call(milepost)).then(() => undefined, (thrown: unknown) => thrown);
    assert.ok(error instanceof of && error instanceof MilepostError && error.constructor === of, `${of.name}: ${String(error)}`);
    assert.deepEqual([error.name, error.code, sqlstateOf(error.cause)], [of.name, code, code]);
    assert.match(error.message, message);
    if (detail !== undefined) assert.equal(error.detail, detail);
    if (hint !== undefined) assert.match(error.hint ?? "", hint);
  }
});

onEach("a conflict of transactions is an error that says so", async (_t, library) => {
  const [kind, key] = ["k", randomUUID()];
  const conflict = library.transaction(async ({ milepost, insert }) => {
    await insert({ test: "the snapshot begins", library: key });
    await pool.query("select milepost.enqueue($1, key => $2)", [kind, key]);
    await milepost.enqueue({ kind, key });
  }, "repeatable read");
  await assert.rejects(conflict, (error) => error instanceof TransactionConflict && error.code === "40001");
});

onEach("other errors of the database stay those of the library", async (_t, library) => {
  const error = await library.transaction(({ milepost }) => milepost.cancel("no uuid")).catch((thrown: unknown) => thrown);
  assert.ok(!(error instanceof MilepostError));
  assert.equal(sqlstateOf(error), "22P02");
});
