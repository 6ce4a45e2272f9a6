/** Milepost's SQL functions, called in a transaction of the application. */

import type { Created, Json, NewBatch, NewJob } from "./client.js";
import { Fenced, mapped } from "./errors.js";
import { callOf } from "./sql.js";
import type { RunSql } from "./sql.js";

/** A job to be enqueued. `id`: a UUIDv7 of the caller; `traceparent`: the span that the job follows from, as W3C Trace Context. */
export interface EnqueuedJob extends NewJob {
  id?: string;
  traceparent?: string;
}

/** A batch to be started. `version`: the first digits of a version of the DAG; `input_checked`: the caller has checked the input against its schema. */
export interface StartedBatch extends NewBatch {
  version?: string;
  input_checked?: boolean;
  traceparent?: string;
}

/** A run of a bulk job to be started. `parameters`: those of its SQL. */
export interface NewBulkRun {
  name: string;
  parameters?: { [name: string]: Json };
  key?: string;
  start_at?: string | Date;
  priority?: number;
  traceparent?: string;
}

/** An event to be emitted. Without `aggregate_seq` it gets the next sequence of its aggregate, and without `event_id` a new UUID. */
export interface NewEvent {
  aggregate_type: string;
  aggregate_id: string;
  event_type: string;
  payload?: Json;
  event_id?: string;
  aggregate_seq?: number;
  headers?: { [name: string]: string };
  gap_allowed?: boolean;
}

/** The event that a call emitted. `duplicate`: it already existed under the same id. */
export type Emitted = { event_id: string; aggregate_seq: number; duplicate: boolean };

/** An event that a consumer received. Pass `emitted_at` if the message has it: with it, a used sequence is recognized more reliably. */
export interface ReceivedEvent {
  aggregate_type: string;
  aggregate_id: string;
  aggregate_seq: number;
  event_id: string;
  event_type: string;
  payload?: Json;
  headers?: { [name: string]: string } | null;
  emitted_at?: string | Date;
}

/**
 * What the inbox decided about an event. `apply`: process it in this transaction; `duplicate`, `parked` and `late`: do nothing. `more`: call
 * `nextParked` until it returns `undefined`. In every case commit, and only then acknowledge the message.
 */
export type Received = { verdict: "apply" | "duplicate" | "parked" | "late"; more: boolean };

const JOB_CREATED = "cast(r.job_id as text) as id, r.duplicate as duplicate";
const JOB_SETTLED = "cast(r.job_id as text) as id, r.outcome <> 'created' as duplicate, r.outcome as outcome";

/**
 * Calls Milepost's SQL functions by a function that runs SQL in a transaction. The subpaths of this package, such as `@milepost/client/pg`, make
 * one from a transaction of a library.
 *
 * Every method throws a subclass of `MilepostError` if the function refuses the call; the transaction can then only be rolled back.
 */
export class Milepost {
  readonly #run: RunSql;

  constructor(run: RunSql) {
    this.#run = run;
  }

  /** Enqueues a job. It exists when the transaction has committed. With a `key`, at most one job of its kind is created. */
  async enqueue(job: EnqueuedJob): Promise<Created> {
    return only(await this.enqueueMany([job]));
  }

  /** Enqueues jobs, all or none, by one statement. Returns the results in the same order. */
  async enqueueMany(jobs: readonly EnqueuedJob[]): Promise<Created[]> {
    const of = <Name extends keyof EnqueuedJob>(name: Name) => jobs.map((job) => job[name]);
    if (jobs.length === 0) return [];
    // Another function, so that jobs without a rule cost nothing more.
    const hasRules = jobs.some((job) => job.on_duplicate !== undefined);
    return await this.#call(hasRules ? "enqueue_many_by_key" : "enqueue_many", hasRules ? JOB_SETTLED : JOB_CREATED, {
      on_duplicates: ["jsonb[]", of("on_duplicate")],
      kinds: ["text[]", of("kind")],
      payloads: ["jsonb[]", jobs.map(({ payload = {} }) => payload)],
      keys: ["text[]", of("key")],
      queues: ["text[]", of("queue")],
      priorities: ["int[]", of("priority")],
      groups: ["text[]", of("group")],
      run_ats: ["timestamptz[]", of("start_at")],
      delays_ms: ["bigint[]", of("delay_ms")],
      max_attempts: ["int[]", of("max_attempts")],
      timeouts_ms: ["bigint[]", of("timeout_ms")],
      ids: ["uuid[]", of("id")],
      traceparents: ["text[]", of("traceparent")],
    });
  }

  /**
   * Cancels a job. Returns its new state, or `stop_requested` if it runs: its handler is asked to stop, and fenced after `grace_ms` (default
   * 10,000). The database account needs the role `milepost_worker`.
   */
  async cancel(id: string, { reason, grace_ms }: { reason?: string; grace_ms?: number } = {}): Promise<string> {
    return await this.#value("cancel", { job: ["uuid", id], reason: ["text", reason], grace_ms: ["bigint", grace_ms] });
  }

  /** Starts a batch of a DAG. With a `key`, at most one batch of the DAG is started. */
  async startBatch(batch: StartedBatch): Promise<Created> {
    const rows = await this.#call<Created>("start_batch", "cast(r.batch_id as text) as id, r.duplicate as duplicate", {
      dag: ["text", batch.dag],
      key: ["text", batch.key],
      input: ["jsonb", batch.input],
      version: ["text", batch.version],
      input_checked: ["boolean", batch.input_checked],
      nominal_at: ["timestamptz", batch.nominal_at],
      nominal_zone: ["text", batch.nominal_zone],
      traceparent: ["text", batch.traceparent],
    });
    return only(rows);
  }

  /**
   * Sends a signal to a batch: the task that waits for it succeeds, with `payload` as its output. A second signal for the batch with the same `id` changes
   * nothing. Returns `accepted`, `duplicate`, or `late` if the task has ended.
   */
  async signal(batch: string, name: string, { payload, id, payload_checked }: { payload?: Json; id?: string; payload_checked?: boolean } = {}): Promise<string> {
    return await this.#value("signal", {
      batch: ["uuid", batch],
      name: ["text", name],
      payload: ["jsonb", payload],
      id: ["text", id],
      payload_checked: ["boolean", payload_checked],
    });
  }

  /** Starts a run of a bulk job. With a `key`, at most one run is started. */
  async startBulk(run: NewBulkRun): Promise<Created> {
    const rows = await this.#call<Created>("start_bulk", JOB_CREATED, {
      name: ["text", run.name],
      payload: ["jsonb", run.parameters],
      key: ["text", run.key],
      run_at: ["timestamptz", run.start_at],
      priority: ["int", run.priority],
      traceparent: ["text", run.traceparent],
    });
    return only(rows);
  }

  /** Emits an event. Other transactions that emit for its aggregate wait until this one ends, so emit late. */
  async emit(event: NewEvent): Promise<Emitted> {
    return only(await this.emitMany([event]));
  }

  /** Emits events, all or none, by one statement. Those of an aggregate are numbered in this order. Returns the results in the same order. */
  async emitMany(events: readonly NewEvent[]): Promise<Emitted[]> {
    const of = <Name extends keyof NewEvent>(name: Name) => events.map((event) => event[name]);
    if (events.length === 0) return [];
    const columns = "cast(r.event_id as text) as id, cast(r.aggregate_seq as text) as seq, r.duplicate as duplicate";
    const rows = await this.#call<{ id: string; seq: string; duplicate: boolean }>("emit_many", columns, {
      aggregate_types: ["text[]", of("aggregate_type")],
      aggregate_ids: ["text[]", of("aggregate_id")],
      event_types: ["text[]", of("event_type")],
      payloads: ["json[]", events.map(({ payload = {} }) => payload)],
      event_ids: ["uuid[]", of("event_id")],
      aggregate_seqs: ["bigint[]", of("aggregate_seq")],
      headers: ["jsonb[]", of("headers")],
      gaps_allowed: ["boolean[]", of("gap_allowed")],
    });
    return rows.map(({ id, seq, duplicate }) => ({ event_id: id, aggregate_seq: Number(seq), duplicate }));
  }

  /** Returns whether a consumer receives the event with this id for the first time. If so, process it in this transaction. */
  async once(consumer: string, eventId: string): Promise<boolean> {
    return await this.#value("once", { consumer: ["text", consumer], event_id: ["uuid", eventId] });
  }

  /** Receives an event of an aggregate in order. */
  async receive(consumer: string, event: ReceivedEvent): Promise<Received> {
    const rows = await this.#call<Received>("receive", "r.verdict as verdict, r.more as more", {
      consumer: ["text", consumer],
      aggregate_type: ["text", event.aggregate_type],
      aggregate_id: ["text", event.aggregate_id],
      aggregate_seq: ["bigint", event.aggregate_seq],
      event_id: ["uuid", event.event_id],
      event_type: ["text", event.event_type],
      payload: ["json", event.payload],
      headers: ["jsonb", event.headers ?? undefined],
      emitted_at: ["timestamptz", event.emitted_at],
    });
    return only(rows);
  }

  /** Receives the next event of an aggregate that the inbox has kept. Process it in this transaction, and call again until it is `undefined`. */
  async nextParked(consumer: string, aggregate_type: string, aggregate_id: string): Promise<ReceivedEvent | undefined> {
    const rows = await this.#call<{ event: string }>("next_parked", "cast(row_to_json(r) as text) as event", {
      consumer: ["text", consumer],
      aggregate_type: ["text", aggregate_type],
      aggregate_id: ["text", aggregate_id],
    });
    return rows[0] && { aggregate_type, aggregate_id, ...(JSON.parse(rows[0].event) as Omit<ReceivedEvent, "aggregate_type" | "aggregate_id">) };
  }

  /**
   * Ends a running job as succeeded when this transaction commits: its effects and the job's end are stored, or neither. Throws `Fenced` if the
   * run has lost its job; let it leave the transaction, which is then rolled back. The database account needs the role `milepost_worker`.
   */
  async complete(job: { readonly id: string; readonly runToken: number | undefined }, result?: Json): Promise<void> {
    if (job.runToken === undefined) throw new TypeError(`job ${job.id} has no run token: upgrade the server that it was claimed from`);
    const given = { job: ["uuid", job.id], run_token: ["int", job.runToken], result: ["jsonb", result] } as const;
    if (await this.#value<boolean>("complete", given)) return;
    throw new Fenced(`job ${job.id} no longer runs with run token ${job.runToken}; the transaction must be rolled back`);
  }

  /** Returns the value of a function that returns one. */
  async #value<Value>(fn: string, given: Parameters<typeof callOf>[2]): Promise<Value> {
    // A function that returns a scalar is a table whose column has the name of its alias.
    return only(await this.#call<{ value: Value }>(fn, "r as value", given)).value;
  }

  async #call<Row>(fn: string, columns: string, given: Parameters<typeof callOf>[2]): Promise<Row[]> {
    const { sql, parameters } = callOf(fn, columns, given);
    try {
      return [...(await this.#run(sql, parameters))] as Row[];
    } catch (error) {
      throw mapped(error, sql);
    }
  }
}

/** Returns the only element. */
function only<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined || rows.length > 1) throw new Error(`PostgreSQL returned ${rows.length} rows instead of one`);
  return row;
}
