/** The worker loop: claims jobs, runs handlers, sends heartbeats, tells how runs ended. */

import { EventEmitter, once } from "node:events";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, listOf, passes, pauseAfter, Problem, Unreachable } from "./client.js";
import type { Json } from "./client.js";

/** Thrown by a handler: the job is given back for a while; the attempt does not count. */
export class Snooze extends Error {
  override readonly name = "Snooze";

  constructor(readonly delayMs: number, why = "") {
    super(why);
  }
}

/** Thrown by a handler: the attempt failed under this code. Any other error fails it under its own name. */
export class Failed extends Error {
  override readonly name = "Failed";

  constructor(message: string, readonly options: { code?: string; retryable?: boolean; delayMs?: number } = {}) {
    super(message);
  }
}

/** Thrown by `job.check()`: somebody asked the job to stop, its time is over, or it is not this worker's any more. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

/** A run as the server hands it out. */
type Claimed = Pick<Job, "id" | "kind" | "payload" | "checkpoint" | "attempt" | "run" | "traceparent"> & { max_attempts: number; timeout_ms?: number };

/** How a run ended, as the server is told. */
type Said = { outcome: string } & Record<string, unknown>;

/** Why a job is to stop; `lost`: its end is not ours to tell. */
type Reason = "cancel" | "abort" | "timeout" | "lost";

/** A job that runs. `payload` is its input, `checkpoint` what an earlier attempt left, `traceparent` the span that it follows from. */
export class Job {
  /** @internal */
  reason: Reason | undefined;
  /** @internal Whether it is settled how it ended; whether that is told; whether its handler has returned. */
  readonly is = { ended: false, told: false, returned: false };
  readonly #stop = new AbortController();
  /** Aborted when the job is to stop; its reason is `cancel`, `abort`, `timeout` or `lost`. To be given to what takes long. */
  readonly signal = this.#stop.signal;

  /** @internal `holder`: the id under which the worker claimed it. */
  constructor(
    readonly id: string, readonly kind: string, readonly payload: Json, readonly checkpoint: Json | undefined, readonly attempt: number,
    readonly maxAttempts: number, readonly timeoutMs: number | undefined, readonly run: string, readonly traceparent: string | undefined,
    readonly holder: number, private readonly tell: (said: object) => Promise<boolean>,
  ) {}

  /** Throws `Cancelled` when the job is to stop. */
  check(): void {
    if (this.#stop.signal.aborted) throw new Cancelled(this.reason);
  }

  /** Tells how far it is, and where the next attempt can go on from. Throws `Cancelled` when the job has moved on. */
  async report(said: { done?: number; total?: number; message?: string; checkpoint?: Json }): Promise<void> {
    const { checkpoint, ...rest } = said;
    const progress = rest.done === undefined ? undefined : rest;
    if (this.reason === "lost" || this.reason === "timeout" || !(await this.tell({ run: this.run, progress, checkpoint }))) {
      this.stop("lost");
      this.check();
    }
  }

  /** @internal */
  stop(reason: Reason): void {
    if (this.reason !== "lost") this.reason = reason;
    this.#stop.abort(reason);
  }
}

/** Runs a job; what it answers is the job's result. */
export type Handler = (job: Job) => Promise<Json | void> | Json | void;

export interface WorkerOptions {
  queues?: readonly string[];
  concurrency?: number;
  leaseMs?: number;
  /** How long a claim waits for jobs, and so how long a worker without any takes to stop. */
  waitMs?: number;
  name?: string;
  log?: (message: string) => void;
}

/** Runs jobs of the kinds in `handlers`, at most `concurrency` at once, until `stop` is called. */
export class Worker {
  readonly #client: Client;
  readonly #handlers: Readonly<Record<string, Handler>>;
  readonly #options: Required<WorkerOptions>;
  #id: number | undefined; // Set while it holds a lease, and until when that is sure.
  #heldUntil = 0;
  #lookAt = 0; // When to ask what the server says it holds; 0 after a claim of which nobody knows whether it was made.
  #stopping = false;
  readonly #running = new Map<string, Job>(); // Until their handlers have returned and their ends are told.
  #ends: { job: Job; said: Said }[] = [];
  readonly #places = new EventEmitter();

  constructor(client: Client, handlers: Readonly<Record<string, Handler>>, options: WorkerOptions = {}) {
    this.#client = client;
    this.#handlers = handlers;
    const name = `${hostname()}-${process.pid}`;
    const log = (message: string) => console.warn(`milepost: ${message}`);
    this.#options = { queues: ["default"], concurrency: 8, leaseMs: 15_000, waitMs: 5_000, name, log, ...options };
  }

  /** Takes no further jobs; `run` resolves when those that run have ended. */
  stop(): void {
    this.#stopping = true;
  }

  /** Runs jobs until `stop` is called, and waits for those that run then. Rejects with `Problem` when the server does not let it register. */
  async run(): Promise<void> {
    const over = new AbortController();
    const beside = [this.#heartbeats(over.signal), this.#tellEnds(over.signal)];
    try {
      while (!this.#stopping) await this.#goOn(this.#id);
      while (this.#running.size > 0) await once(this.#places, "free");
    } finally {
      over.abort();
      await Promise.all(beside);
    }
    if (this.#id !== undefined) await this.#client.ask("DELETE", `/v1/workers/${this.#id}`, undefined, { tries: 3, timeoutMs: 5_000 }).catch(() => undefined);
  }

  async #tell<T>(holder: number, verb: string, body: object, tries = 1, timeoutMs = 60_000): Promise<T> {
    return await this.#client.ask<T>("POST", `/v1/workers/${holder}/${verb}`, body, { tries, timeoutMs });
  }

  /** Claims jobs, under a lease; waits after what failed. */
  async #goOn(holder: number | undefined): Promise<void> {
    try {
      await (holder === undefined ? this.#register() : this.#claim(holder));
    } catch (error) {
      if (holder === undefined && !passes(error)) throw error;
      if (holder !== undefined && (error as Problem).code === "worker_lost") return this.#lose(holder, error);
      this.#lookAt = 0;
      this.#options.log(`${error}; trying again`);
      const until = performance.now() + Math.max(pauseAfter(error, 0), 1000);
      while (!this.#stopping && performance.now() < until) await sleep(50);
    }
  }

  async #register(): Promise<void> {
    const { name, queues, leaseMs } = this.#options;
    const body = { name, queues, kinds: Object.keys(this.#handlers), lease_ms: leaseMs };
    const askedAt = performance.now();
    const answer = await this.#client.ask<{ id?: number } | undefined>("POST", "/v1/workers", body);
    if (typeof answer?.id !== "number") throw new Unreachable("the answer to a registration is not Milepost's: it has no id");
    this.#id = answer.id;
    this.#heldUntil = askedAt + leaseMs;
  }

  /** What runs is somebody else's now, or will be: nothing is told of it any more. `run` registers anew. */
  #lose(holder: number, why: unknown): void {
    if (this.#id !== holder) return;
    this.#id = undefined;
    for (const job of this.#running.values()) if (!job.is.ended) job.stop("lost");
    this.#options.log(`the lease is given up: ${why}; what runs is stopped, it is tried again elsewhere`);
  }

  /** Takes as many jobs as there are free places, and waits for some. */
  async #claim(holder: number): Promise<void> {
    const { queues, concurrency, waitMs } = this.#options;
    const free = concurrency - this.#running.size;
    if (free <= 0) return void (await once(this.#places, "free"));
    let jobs = performance.now() >= this.#lookAt ? await this.#adopt(holder, free) : [];
    if (jobs.length === 0) {
      const body = { queues, kinds: Object.keys(this.#handlers), limit: free, wait_ms: waitMs };
      jobs = listOf<Claimed>(await this.#tell(holder, "claim", body, 1, waitMs + 30_000), "jobs");
    }
    // Under a lease that was given up meanwhile nothing is begun.
    if (this.#id === holder) for (const job of jobs) void this.#start(holder, job);
  }

  /** What the server says we hold and we do not know of: the answer to its claim was lost. */
  async #adopt(holder: number, free: number): Promise<Claimed[]> {
    // Looked at before the server is asked: a run that ends in between was known.
    const known = new Set(this.#running.keys());
    const held = listOf<Claimed>(await this.#client.ask("GET", `/v1/workers/${holder}/jobs`), "jobs");
    const unknown = held.filter((job) => !known.has(job.run));
    this.#lookAt = unknown.length > free ? 0 : performance.now() + 30_000;
    return unknown.slice(0, free);
  }

  async #start(holder: number, claimed: Claimed): Promise<void> {
    const report = async (said: object) => listOf<boolean>(await this.#tell(holder, "report", { runs: [said] }, 4), "accepted")[0] === true;
    const { id, kind, payload, checkpoint, attempt, max_attempts, timeout_ms, run, traceparent } = claimed;
    const job = new Job(id, kind, payload, checkpoint, attempt, max_attempts, timeout_ms, run, traceparent, holder, report);
    this.#running.set(run, job);
    // No timer can be set for longer.
    const limit = (timeout_ms ?? Infinity) < 2 ** 31 ? setTimeout(() => this.#timeOut(job), timeout_ms) : undefined;
    const said = await this.#endOf(job);
    clearTimeout(limit);
    job.is.returned = true;
    this.#end(job, said);
    this.#letGo(job);
  }

  /** A function cannot be ended from outside: its place is taken until it returns, but what it says counts no more. */
  #timeOut(job: Job): void {
    const late = { outcome: "failed", error_code: "timeout", message: `the attempt took longer than ${job.timeoutMs} ms` };
    this.#end(job, job.signal.aborted ? stopped(job) : late);
    job.stop("timeout");
  }

  #end(job: Job, said: Said): void {
    if (job.is.ended) return;
    job.is.ended = true;
    if (job.reason === "lost") job.is.told = true;
    else this.#ends.push({ job, said });
  }

  #letGo(job: Job): void {
    if (!job.is.returned || !job.is.told) return;
    this.#running.delete(job.run);
    this.#places.emit("free");
  }

  async #endOf(job: Job): Promise<Said> {
    try {
      return { outcome: "succeeded", result: (await this.#handlers[job.kind]!(job)) ?? null };
    } catch (error) {
      if (error instanceof Snooze) return { outcome: "snoozed", delay_ms: error.delayMs, message: error.message };
      if (error instanceof Cancelled || job.signal.aborted) return stopped(job);
      if (error instanceof Failed) {
        const { code = "failed", retryable = true, delayMs } = error.options;
        const delay = delayMs === undefined ? {} : { delay_ms: delayMs };
        return { outcome: "failed", error_code: code, message: error.message, retryable, ...delay };
      }
      const [name, words] = error instanceof Error ? [error.name, error.stack ?? error.message] : ["Error", String(error)];
      return { outcome: "failed", error_code: name, message: words.slice(0, 2000) };
    }
  }

  /** Tells ends, many at a time, until the server has heard them. */
  async #tellEnds(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const ends = this.#ends.splice(0, 500);
      if (ends.length === 0) await sleep(5);
      else await this.#tellUntilHeard(ends);
      for (const { job } of ends) {
        job.is.told = true;
        this.#letGo(job);
      }
    }
  }

  /** Tells ends for as long as a lease; then the lease is given up, so that it runs out and their jobs are tried again. What the server cannot take is told as a failure. */
  async #tellUntilHeard(ends: { job: Job; said: Said }[]): Promise<void> {
    const giveUpAt = performance.now() + this.#options.leaseMs;
    for (let failures = 0; ; failures += 1) {
      let why: unknown;
      const tryMs = Math.max(Math.min(this.#options.leaseMs / 3, giveUpAt - performance.now()), 1);
      const runs = ends.map(({ job, said }) => ({ run: job.run, ...said }));
      const telling = this.#tell(ends[0]!.job.holder, "finish", { runs }, 1, tryMs).then((answer) => listOf<string>(answer, "runs"));
      const told = await telling.catch((error) => void (why = error));
      if (told) return told.forEach((said, n) => said === "fenced" && this.#options.log(`run ${runs[n]?.run} had moved on; its end was not taken`));
      if (!passes(why) && !(why instanceof Problem && ![400, 413, 422].includes(why.status))) {
        if (ends.length > 1) {
          for (const end of ends) await this.#tellUntilHeard([end]);
          return;
        }
        const said = { outcome: "failed", error_code: "end_not_taken", message: String(why).slice(0, 2000) };
        ends = ends.map(({ job }) => ({ job, said }));
      }
      const left = giveUpAt - performance.now();
      if (left <= 0 || ends.every(({ job }) => job.holder !== this.#id)) {
        this.#options.log(`the ends of ${ends.length} runs could not be told: ${why}`);
        return ends.forEach(({ job }) => this.#lose(job.holder, "ends could not be told"));
      }
      this.#options.log(`${why}; telling ends again`);
      await sleep(Math.min(pauseAfter(why, failures), left));
    }
  }

  async #heartbeats(over: AbortSignal): Promise<void> {
    for (let pause = 0; ; ) {
      await sleep(pause, undefined, { signal: over }).catch(() => undefined);
      if (over.aborted) return;
      pause = this.#id === undefined ? this.#options.leaseMs / 15 : await this.#beat(this.#id);
    }
  }

  /** Renews the lease; answers how long to wait then. */
  async #beat(holder: number): Promise<number> {
    const [askedAt, { leaseMs }] = [performance.now(), this.#options];
    const timeoutMs = Math.min(leaseMs / 3, Math.max(this.#heldUntil - askedAt, 1));
    try {
      const stops = listOf<{ job: string; token: number; verb: Reason }>(await this.#tell(holder, "heartbeat", {}, 1, timeoutMs), "stops");
      this.#heldUntil = askedAt + leaseMs;
      for (const job of this.#running.values()) {
        for (const stop of stops) if (job.run.startsWith(`${stop.job}.${stop.token}.`)) job.stop(stop.verb);
      }
      return leaseMs / 3;
    } catch (error) {
      this.#options.log(`${error}; the lease could not be renewed`);
      if ((error as Problem).code === "worker_lost" || performance.now() >= this.#heldUntil) this.#lose(holder, error);
      return Math.min(Math.max(pauseAfter(error, 0), leaseMs / 15), leaseMs / 3);
    }
  }
}

const stopped = (job: Job): Said => ({ outcome: job.reason === "abort" ? "aborted" : "canceled" });
