/** Worker loop: claims jobs, runs handlers, sends heartbeats, reports the ends of runs. */

import { EventEmitter, once } from "node:events";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, listOf, passes, pauseAfter, Problem, Unreachable } from "./client.js";
import type { Json } from "./client.js";

/** Thrown by a handler: releases the job for the given time; the attempt does not count. */
export class Snooze extends Error {
  override readonly name = "Snooze";

  constructor(readonly delayMs: number, why = "") {
    super(why);
  }
}

/** Thrown by a handler: the attempt failed with this error code. For any other error, the code is its name. */
export class Failed extends Error {
  override readonly name = "Failed";

  constructor(message: string, readonly options: { code?: string; retryable?: boolean; delayMs?: number } = {}) {
    super(message);
  }
}

/** Thrown by `job.check()`: a stop was requested, the time limit was exceeded, or this worker has lost the job. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

/** Returns text that the server accepts: halves of surrogate pairs are replaced, also one that a cut leaves. */
function text(words: unknown, charsMax = Infinity): string {
  return String(words).slice(0, charsMax).replace(/\p{Surrogate}/gu, "\uFFFD");
}

/** Describes any value that a handler can throw, also one that cannot be converted to a string. */
function described(thrown: unknown): { error_code: string; message: string } {
  try {
    const [name, words] = thrown instanceof Error ? [thrown.name, thrown.stack ?? thrown.message] : ["Error", thrown];
    return { error_code: text(name), message: text(words, 2000) };
  } catch {
    return { error_code: "Error", message: "the handler threw a value that has no text" };
  }
}

/** Returns a delay in whole milliseconds, as the server requires them. */
function wholeMs(delayMs: number): number {
  return Math.max(Math.ceil(delayMs), 0);
}

/** A claimed run, as the server returns it. */
type Claimed = Pick<Job, "id" | "kind" | "payload" | "checkpoint" | "attempt" | "run" | "traceparent"> & { max_attempts: number; timeout_ms?: number };

/** The end of a run, as reported to the server. */
type Said = { outcome: string } & Record<string, unknown>;
type End = { job: Job; said: Said };

/** Why a job must stop; `lost`: its end is not reported. */
type Reason = "cancel" | "abort" | "timeout" | "lost";

/** A running job. `payload` is its input, `checkpoint` the last checkpoint of an earlier attempt, `traceparent` its parent span. */
export class Job {
  /** @internal */
  reason: Reason | undefined;
  /** @internal Whether the end is decided, whether it is reported, and whether the handler has returned. */
  readonly is = { ended: false, told: false, returned: false };
  readonly #stop = new AbortController();
  /** Aborted when the job must stop; the reason is `cancel`, `abort`, `timeout` or `lost`. Pass it to long-running operations. */
  readonly signal = this.#stop.signal;

  /** @internal `holder`: the id of the worker that claimed the job. */
  constructor(
    readonly id: string, readonly kind: string, readonly payload: Json, readonly checkpoint: Json | undefined, readonly attempt: number,
    readonly maxAttempts: number, readonly timeoutMs: number | undefined, readonly run: string, readonly traceparent: string | undefined,
    readonly holder: number, private readonly tell: (said: object) => Promise<boolean>,
  ) {}

  /** Throws `Cancelled` if the job must stop. */
  check(): void {
    if (this.#stop.signal.aborted) throw new Cancelled(this.reason);
  }

  /** Reports progress, and a checkpoint for the next attempt. Throws `Cancelled` if the job has left this run. */
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

/** Runs a job. The return value is the job's result. */
export type Handler = (job: Job) => Promise<Json | void> | Json | void;

export interface WorkerOptions {
  queues?: readonly string[];
  concurrency?: number;
  leaseMs?: number;
  /** How long a claim waits for jobs, and therefore how long an idle worker may take to stop. */
  waitMs?: number;
  name?: string;
  log?: (message: string) => void;
}

/** Runs jobs of the kinds in `handlers`, at most `concurrency` at the same time, until `stop` is called. */
export class Worker {
  readonly #client: Client;
  readonly #handlers: Readonly<Record<string, Handler>>;
  readonly #options: Required<WorkerOptions>;
  #id: number | undefined; // Set while the worker holds a lease, and until when the lease certainly lasts.
  #heldUntil = 0;
  #lookAt = 0; // When to query the assigned jobs; 0 after a claim whose result is unknown.
  #stopping = false;
  readonly #running = new Map<string, Job>(); // Jobs whose handler has not returned or whose end is not reported.
  #ends: End[] = [];
  readonly #places = new EventEmitter();

  constructor(client: Client, handlers: Readonly<Record<string, Handler>>, options: WorkerOptions = {}) {
    this.#client = client;
    this.#handlers = handlers;
    const name = `${hostname()}-${process.pid}`;
    const log = (message: string) => console.warn(`milepost: ${message}`);
    this.#options = { queues: ["default"], concurrency: 8, leaseMs: 15_000, waitMs: 5_000, name, log, ...options };
  }

  /** Stops claiming jobs; `run` resolves when the running jobs have ended. */
  stop(): void {
    this.#stopping = true;
  }

  /** Runs jobs until `stop` is called, then waits for the running ones. Rejects with `Problem` if the server rejects the registration. */
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

  /** Registers the worker, or claims jobs if it is registered. Waits after an error. */
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
    if (typeof answer?.id !== "number") throw new Unreachable("the answer to the registration is not from Milepost: it has no id");
    this.#id = answer.id;
    this.#heldUntil = askedAt + leaseMs;
  }

  /** Stops the running jobs, because other workers take them over, and reports nothing more about them. `run` registers again. */
  #lose(holder: number, why: unknown): void {
    if (this.#id !== holder) return;
    this.#id = undefined;
    for (const job of this.#running.values()) if (!job.is.ended) job.stop("lost");
    this.#options.log(`the lease is lost: ${why}; stopping the running jobs, which will be retried`);
  }

  /** Claims up to as many jobs as there are free places, and waits if there are none. */
  async #claim(holder: number): Promise<void> {
    const { queues, concurrency, waitMs } = this.#options;
    const free = concurrency - this.#running.size;
    if (free <= 0) return void (await once(this.#places, "free"));
    let jobs = performance.now() >= this.#lookAt ? await this.#adopt(holder, free) : [];
    if (jobs.length === 0) {
      const body = { queues, kinds: Object.keys(this.#handlers), limit: free, wait_ms: waitMs };
      jobs = listOf<Claimed>(await this.#tell(holder, "claim", body, 1, waitMs + 30_000), "jobs");
    }
    // Start nothing if the lease was lost in between.
    if (this.#id === holder) for (const job of jobs) void this.#start(holder, job);
  }

  /** Returns jobs that the server has assigned to this worker but the worker does not know: the response to their claim was lost. */
  async #adopt(holder: number, free: number): Promise<Claimed[]> {
    // Read before the request, so that a run that ends in between is known.
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
    // The maximum delay of a timer.
    const limit = (timeout_ms ?? Infinity) < 2 ** 31 ? setTimeout(() => this.#timeOut(job), timeout_ms) : undefined;
    const said = await this.#endOf(job);
    clearTimeout(limit);
    job.is.returned = true;
    this.#end(job, said);
    this.#letGo(job);
  }

  /** Ends a job that has exceeded its time limit. Its handler cannot be stopped and keeps its place until it returns; its result is ignored. */
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
      if (error instanceof Snooze) return { outcome: "snoozed", delay_ms: wholeMs(error.delayMs), message: text(error.message) };
      if (error instanceof Cancelled || job.signal.aborted) return stopped(job);
      if (error instanceof Failed) {
        const { code = "failed", retryable = true, delayMs } = error.options;
        const delay = delayMs === undefined ? {} : { delay_ms: wholeMs(delayMs) };
        return { outcome: "failed", error_code: text(code), message: text(error.message), retryable, ...delay };
      }
      return { outcome: "failed", ...described(error) };
    }
  }

  /**
   * Reports ends in batches and repeats each report until the server answers. Ends that an open transaction holds are reported again once a
   * second, apart from the others.
   */
  async #tellEnds(over: AbortSignal): Promise<void> {
    let held: End[] = [];
    for (let againAt = 0; !over.aborted; ) {
      if (held.length > 0 && performance.now() >= againAt) {
        held = await this.#report(held);
        againAt = performance.now() + 1000;
      }
      const ends = this.#ends.splice(0, 500);
      if (ends.length === 0) await sleep(5);
      else held.push(...(await this.#report(ends)));
    }
  }

  /** Reports ends. Returns those that an open transaction holds. */
  async #report(ends: End[]): Promise<End[]> {
    const held = await this.#tellUntilHeard(ends);
    for (const { job } of ends) {
      if (held.some((end) => end.job === job)) continue;
      job.is.told = true;
      this.#letGo(job);
    }
    return held;
  }

  /**
   * Reports ends for up to the duration of a lease. After that the worker stops renewing its lease, so that it expires and the jobs are retried.
   * An end that the server rejects is reported as a failure. Returns the ends that an open transaction holds.
   */
  async #tellUntilHeard(ends: End[]): Promise<End[]> {
    const giveUpAt = performance.now() + this.#options.leaseMs;
    for (let failures = 0; ; failures += 1) {
      let why: unknown;
      const tryMs = Math.max(Math.min(this.#options.leaseMs / 3, giveUpAt - performance.now()), 1);
      const runs = ends.map(({ job, said }) => ({ run: job.run, ...said }));
      const telling = this.#tell(ends[0]!.job.holder, "finish", { runs }, 1, tryMs).then((answer) => listOf<string>(answer, "runs"));
      const told = await telling.catch((error) => void (why = error));
      if (told) {
        told.forEach((said, n) => said === "fenced" && this.#options.log(`the job had left run ${runs[n]?.run}; the end of the run was ignored`));
        return ends.filter((_, n) => told[n] === "held");
      }
      if (!passes(why) && !(why instanceof Problem && ![400, 413, 422].includes(why.status))) {
        if (ends.length > 1) {
          const held: End[] = [];
          for (const end of ends) held.push(...(await this.#tellUntilHeard([end])));
          return held;
        }
        const said = { outcome: "failed", error_code: "end_not_taken", message: text(why, 2000) };
        ends = ends.map(({ job }) => ({ job, said }));
      }
      const left = giveUpAt - performance.now();
      if (left <= 0 || ends.every(({ job }) => job.holder !== this.#id)) {
        this.#options.log(`the ends of ${ends.length} runs could not be reported: ${why}`);
        ends.forEach(({ job }) => this.#lose(job.holder, "ends of runs could not be reported"));
        return [];
      }
      this.#options.log(`${why}; reporting the ends of runs again`);
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

  /** Renews the lease. Returns how long to wait before the next heartbeat. */
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
