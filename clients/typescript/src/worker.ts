/** Worker loop: claims jobs, runs handlers, sends heartbeats, reports the ends of runs. */

import { EventEmitter, once } from "node:events";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, listOf, passes, pauseAfter, Problem, Unreachable } from "./client.js";
import { Cancelled, Failed, Job, Snooze } from "./job.js";
import type { Claimed, Handler, Reason } from "./job.js";

/** Error code of a run whose end is not JSON, or is rejected by the server. */
const NOT_TAKEN = "end_not_taken";
/** Maximum number of jobs that the server returns for a claim. */
const CLAIM_MAX = 500;
/** Limits of a request that reports ends. The server accepts 1,000 ends and 16 MiB. */
const ENDS_MAX = 500;
const ENDS_BYTES_MAX = 8 * 2 ** 20;
/** Maximum number of characters of a failure's message in a line of the log. */
const LOGGED_MAX = 2000;
/** Maximum number of held ends that occupy no places. */
const HELD_MAX = 2000;
/** Pauses between reports of held ends. */
const HELD_PAUSE_MIN_MS = 100;
const HELD_PAUSE_MAX_MS = 1000;

/** Returns text that the server accepts, of at most as many characters as it keeps. Halves of surrogate pairs are replaced. */
function text(words: unknown, charsMax = 10_000): string {
  return String(words ?? "").slice(0, charsMax).replace(/\p{Surrogate}/gu, "\uFFFD");
}

function failure(code: unknown, message: unknown): Said {
  return { outcome: "failed", error_code: text(code, 200) || "failed", message: text(message) };
}

/** Returns a delay in whole milliseconds, as the server requires them. It reduces long delays to a hundred years. */
function wholeMs(delayMs: number): number {
  const ms = Math.min(Math.max(Math.ceil(delayMs), 0), Number.MAX_SAFE_INTEGER);
  if (Number.isNaN(ms)) throw new TypeError("the delay is not a number");
  return ms;
}

/** The end of a run, as reported to the server. */
type Said = { outcome: string } & Record<string, unknown>;
type End = { job: Job; json: string };

/**
 * How long a job waits after a failed attempt: `baseMs` (default 1,000), doubled with each failure, up to `capMs` (default an hour). `jitter`:
 * the random share of the wait, from 0 for none to 1 for any wait from zero to double (default 0.1).
 */
export interface Backoff {
  baseMs?: number;
  capMs?: number;
  jitter?: number;
}

export interface WorkerOptions {
  queues?: readonly string[];
  concurrency?: number;
  leaseMs?: number;
  /** How long a claim waits for jobs, and therefore how long an idle worker may take to stop. */
  waitMs?: number;
  name?: string;
  /** Receives the lines of the log. By default they are written to the standard error. */
  log?: (message: string) => void;
  /** How long jobs of these kinds wait after a failed attempt. The others wait 1 s, then 2 s, 4 s and so on up to an hour. */
  backoffs?: Readonly<Record<string, Backoff>>;
}

/** Runs jobs of the kinds in `handlers`, at most `concurrency` at the same time, until `stop` is called. */
export class Worker {
  readonly #client: Client;
  readonly #handlers: Readonly<Record<string, Handler>>;
  readonly #options: Required<WorkerOptions>;
  readonly #backoffs: Readonly<Record<string, object>>; // As the server reads them.
  #id: number | undefined; // Set while the worker holds a lease, and until when the lease certainly lasts.
  #heldUntil = 0;
  #lookAt = 0; // When to query the assigned jobs; 0 after a claim whose result is unknown.
  #stopping = false;
  readonly #running = new Map<string, Job>(); // Jobs whose handler has not returned or whose end is not reported.
  readonly #apart = new Set<string>(); // Runs whose handler has returned and whose end is held.
  readonly #ends: End[] = [];
  #heldEnds: End[] = []; // Ends that open transactions of other programs hold.
  readonly #places = new EventEmitter();

  constructor(client: Client, handlers: Readonly<Record<string, Handler>>, options: WorkerOptions = {}) {
    this.#client = client;
    this.#handlers = handlers;
    const name = `${hostname()}-${process.pid}`;
    const log = (message: string) => console.warn(`milepost: ${message}`);
    this.#options = { queues: ["default"], concurrency: 8, leaseMs: 15_000, waitMs: 5_000, name, log, backoffs: {}, ...options };
    this.#backoffs = Object.fromEntries(Object.entries(this.#options.backoffs).map(([kind, backoff]) => [kind, backoffBody(backoff)]));
  }

  /** Stops claiming jobs; `run` resolves when the running jobs have ended. */
  stop(): void {
    this.#stopping = true;
  }

  /**
   * Runs jobs until `stop` is called or `signal` is aborted, then waits for the running ones. Rejects with `Problem` if the server rejects the
   * registration.
   */
  async run({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const stop = () => this.stop();
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
    try {
      await this.#runUntilStopped();
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  async #runUntilStopped(): Promise<void> {
    const over = new AbortController();
    const beside = [this.#heartbeats(over.signal), this.#tellEnds(over.signal), this.#tellHeld(over.signal)];
    try {
      while (!this.#stopping) await this.#goOn(this.#id);
      while (this.#running.size > 0) await once(this.#places, "free");
    } finally {
      over.abort();
      await Promise.all(beside);
    }
    if (this.#id !== undefined) await this.#client.ask("DELETE", `/v1/workers/${this.#id}`, undefined, { tries: 3, timeoutMs: 5_000 }).catch(() => undefined);
    this.#options.log(`worker ${this.#options.name} has stopped`);
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
    const kinds = Object.keys(this.#handlers);
    const body = { name, queues, kinds, lease_ms: leaseMs, slots: this.#options.concurrency, backoffs: this.#backoffs };
    const askedAt = performance.now();
    const answer = await this.#client.ask<{ id?: number } | undefined>("POST", "/v1/workers", body);
    if (typeof answer?.id !== "number") throw new Unreachable("the answer to the registration is not from Milepost: it has no id");
    this.#id = answer.id;
    this.#heldUntil = askedAt + leaseMs;
    this.#options.log(`worker ${name} is registered at ${this.#client.address}; queues: ${queues.join(", ")}; kinds: ${kinds.join(", ")}`);
  }

  /** Stops the running jobs, because other workers take them over, and reports nothing more about them. `run` registers again. */
  #lose(holder: number, why: unknown): void {
    if (this.#id !== holder) return;
    this.#id = undefined;
    for (const job of this.#running.values()) if (!job.is.ended) job.stop("lost");
    this.#options.log(`the lease is lost: ${why}; stopping the running jobs, which will be retried`);
  }

  /**
   * Returns the number of free places. A place is occupied until the handler has returned and the end is reported. Held ends occupy places only
   * beyond the first `HELD_MAX`.
   */
  #free(): number {
    return this.#options.concurrency - this.#running.size + Math.min(this.#apart.size, HELD_MAX);
  }

  /** Claims up to as many jobs as there are free places, and waits if there are none. */
  async #claim(holder: number): Promise<void> {
    const { queues, waitMs } = this.#options;
    const free = Math.min(this.#free(), CLAIM_MAX);
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
    const { kind, run, timeout_ms } = claimed;
    const job = new Job(claimed, holder, report, this.#backoffs[kind]);
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
    const late = failure("timeout", `the attempt took longer than ${job.timeoutMs} ms`);
    this.#end(job, job.signal.aborted ? stopped(job) : late);
    job.stop("timeout");
  }

  #end(job: Job, said: Said): void {
    if (job.is.ended) return;
    job.is.ended = true;
    const { end, json } = encoded(job, said);
    if (job.reason === "lost") job.is.told = true;
    else this.#ends.push({ job, json });
    this.#logFailure(job, end);
  }

  /** Logs the end of a run if it is a failure. */
  #logFailure(job: Job, end: Said): void {
    if (end.outcome !== "failed") return;
    const isFinal = job.attempt >= job.maxAttempts || end["retryable"] === false;
    const then =
      job.reason === "lost" ? "this is not reported, because the worker has lost the job"
      : job.reason === "cancel" || job.reason === "abort" ? "no attempt follows, because a stop was requested"
      : isFinal ? "no attempt follows" : "another attempt follows";
    const [code, message] = [`${end["error_code"]}: `, String(end["message"])];
    const why = message.startsWith(code) ? message : code + message; // A stack begins with the name of the error.
    this.#options.log(`job ${job.id} (${job.kind}): attempt ${job.attempt} of ${job.maxAttempts} failed; ${then}: ${why.slice(0, LOGGED_MAX)}`);
  }

  #whyIgnored(job: Job): string {
    if (job.reason === "cancel" || job.reason === "abort") return `the job was ${stopped(job).outcome}`;
    if (job.holder !== this.#id) return "this worker had lost its lease, and the job was taken over";
    return "the job was taken over, or an operator or another program had ended it";
  }

  /** Frees the place of a job that has ended. */
  #letGo(job: Job): void {
    if (!job.is.returned || !(job.is.told || job.is.held)) return;
    if (job.is.told) {
      this.#running.delete(job.run);
      this.#apart.delete(job.run);
    } else this.#apart.add(job.run);
    this.#places.emit("free");
  }

  async #endOf(job: Job): Promise<Said> {
    try {
      return { outcome: "succeeded", result: (await this.#handlers[job.kind]!(job)) ?? null };
    } catch (error) {
      return endAfter(error, job);
    }
  }

  /** Reports ends in batches. */
  async #tellEnds(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      if (this.#ends.length === 0) await sleep(5);
      else await this.#report(nextBatch(this.#ends));
    }
  }

  /** Reports held ends again, until their transactions have ended. A separate loop does this, so that they do not delay other ends. */
  async #tellHeld(over: AbortSignal): Promise<void> {
    for (let pause = HELD_PAUSE_MIN_MS; ; ) {
      await sleep(pause, undefined, { signal: over }).catch(() => undefined);
      if (over.aborted) return;
      const held = this.#heldEnds;
      this.#heldEnds = [];
      pause = held.length > 0 ? Math.min(pause * 2, HELD_PAUSE_MAX_MS) : HELD_PAUSE_MIN_MS;
      while (held.length > 0) await this.#report(nextBatch(held));
    }
  }

  /** Reports ends, and keeps those that an open transaction holds. */
  async #report(ends: End[]): Promise<void> {
    const held = await this.#tellUntilHeard(ends);
    this.#heldEnds.push(...held);
    const waiting = new Set(held.map(({ job }) => job));
    for (const { job } of ends) {
      job.is.held = waiting.has(job);
      job.is.told = !job.is.held;
      this.#letGo(job);
    }
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
      try {
        const body = Buffer.from(`{"runs":[${ends.map(({ json }) => json).join()}]}`);
        const told = listOf<string>(await this.#tell(ends[0]!.job.holder, "finish", body, 1, tryMs), "runs");
        if (told.length !== ends.length) throw new Unreachable(`the answer is not from Milepost: it answers ${told.length} of ${ends.length} ends`);
        for (const { job } of ends.filter((_, n) => told[n] === "fenced")) {
          this.#options.log(`job ${job.id} (${job.kind}): the end of attempt ${job.attempt} was ignored: ${this.#whyIgnored(job)}`);
        }
        return ends.filter((_, n) => told[n] === "held");
      } catch (error) {
        why = error;
      }
      if (why instanceof Problem && [400, 413, 422].includes(why.status)) {
        const half = Math.floor(ends.length / 2);
        if (half > 0) return [...(await this.#tellUntilHeard(ends.slice(0, half))), ...(await this.#tellUntilHeard(ends.slice(half)))];
        const { job, json: before } = ends[0]!;
        const { end, json } = encoded(job, failure(NOT_TAKEN, why));
        ends = [{ job, json }];
        if (json !== before) this.#logFailure(job, end); // Otherwise it is logged already.
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

/** Returns a backoff as the server reads it; settings that are missing have the server's defaults. */
function backoffBody({ baseMs, capMs, jitter }: Backoff): object {
  const ms = (time: number | undefined) => (time === undefined ? undefined : wholeMs(time));
  return { base_ms: ms(baseMs), cap_ms: ms(capMs), jitter };
}

const stopped = (job: Job): Said => ({ outcome: job.reason === "abort" ? "aborted" : "canceled" });

/** Returns the end of a run whose handler threw a value. Each run gets an end, also after a value that cannot be described. */
function endAfter(thrown: unknown, job: Job): Said {
  try {
    if (thrown instanceof Snooze) return { outcome: "snoozed", delay_ms: wholeMs(thrown.delayMs), message: text(thrown.message) };
    if (thrown instanceof Cancelled || job.signal.aborted) return stopped(job);
    if (thrown instanceof Failed) {
      const { code = "failed", retryable = true, delayMs } = thrown.options ?? {};
      const delay = delayMs === undefined || delayMs === null ? {} : { delay_ms: wholeMs(delayMs) };
      return { ...failure(code, thrown.message), retryable: Boolean(retryable), ...delay };
    }
  } catch {
    // For example, a `Failed` with options of other types.
  }
  return described(thrown);
}

/** Describes any value that was thrown as a failure, also one that cannot be converted to a string. */
function described(thrown: unknown): Said {
  try {
    return thrown instanceof Error ? failure(thrown.name, text(thrown.stack ?? thrown.message, 2000)) : failure("Error", text(String(thrown), 2000));
  } catch {
    return failure("Error", "the handler threw a value that has no text");
  }
}

/** Returns the end of a run, and its JSON. A result that is not JSON fails the run. */
function encoded(job: Job, said: Said): { end: Said; json: string } {
  const json = (end: Said) => JSON.stringify({ run: job.run, ...end, backoff: end.outcome === "failed" ? job.backoff : undefined });
  try {
    return { end: said, json: json(said) };
  } catch (error) {
    const end = failure(NOT_TAKEN, `the result is not JSON: ${described(error)["message"]}`);
    return { end, json: json(end) };
  }
}

/** Removes and returns the ends of the next request. They belong to one registration of the worker, because the request names it. */
function nextBatch(ends: End[]): End[] {
  let [count, bytes] = [0, 0];
  for (; count < Math.min(ends.length, ENDS_MAX); count += 1) {
    bytes += Buffer.byteLength(ends[count]!.json) + 1;
    if (count > 0 && (bytes > ENDS_BYTES_MAX || ends[count]!.job.holder !== ends[0]!.job.holder)) break;
  }
  return ends.splice(0, count);
}
