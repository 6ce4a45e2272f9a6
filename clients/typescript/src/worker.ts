/** The worker loop: claims jobs, runs handlers, sends heartbeats, tells how runs ended. */

import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, Problem, Unreachable } from "./client.js";
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

/** Thrown by `job.check()`: somebody asked the job to stop, or it is not this worker's any more. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

/** A run as the server hands it out. */
type Claimed = Pick<Job, "id" | "kind" | "payload" | "checkpoint" | "attempt" | "run" | "traceparent"> & { max_attempts: number };

/** How a run ended. */
type End = { run: string; outcome: string } & Record<string, unknown>;

/** A job that runs. `payload` is its input, `checkpoint` what an earlier attempt left. */
export class Job {
  readonly id: string;
  readonly kind: string;
  readonly payload: Json;
  readonly checkpoint: Json | undefined;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly run: string;
  /** The span of a trace that it follows from, for the tracer of the process. */
  readonly traceparent: string | undefined;
  readonly #stop = new AbortController();
  readonly #report: (said: object) => Promise<boolean>;

  /** @internal */
  constructor(claimed: Claimed, report: (said: object) => Promise<boolean>) {
    this.id = claimed.id;
    this.kind = claimed.kind;
    this.payload = claimed.payload;
    this.checkpoint = claimed.checkpoint;
    this.attempt = claimed.attempt;
    this.maxAttempts = claimed.max_attempts;
    this.run = claimed.run;
    this.traceparent = claimed.traceparent;
    this.#report = report;
  }

  /** Aborted when the job is to stop; its reason is `cancel` or `abort`. To be given to what takes long. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Throws `Cancelled` when the job is to stop. */
  check(): void {
    if (this.#stop.signal.aborted) throw new Cancelled(String(this.#stop.signal.reason));
  }

  /** Tells how far it is, and where the next attempt can go on from. Throws `Cancelled` when the job has moved on. */
  async report(said: { done?: number; total?: number; message?: string; checkpoint?: Json }): Promise<void> {
    const { done, total, message, checkpoint } = said;
    const progress = done === undefined ? {} : { progress: { done, total, message } };
    const kept = checkpoint === undefined ? {} : { checkpoint };
    if (!(await this.#report({ run: this.run, ...progress, ...kept }))) {
      this.stop("cancel");
      this.check();
    }
  }

  /** @internal */
  stop(verb: string): void {
    this.#stop.abort(verb);
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
  #id = 0;
  #heldUntil = 0;
  #stopping = false;
  readonly #running = new Map<string, Job>();
  #ends: End[] = [];
  #heard: (() => void)[] = [];

  constructor(client: Client, handlers: Readonly<Record<string, Handler>>, options: WorkerOptions = {}) {
    this.#client = client;
    this.#handlers = handlers;
    this.#options = {
      queues: ["default"],
      concurrency: 8,
      leaseMs: 15_000,
      waitMs: 5_000,
      name: `${hostname()}-${process.pid}`,
      log: (message) => console.warn(`milepost: ${message}`),
      ...options,
    };
  }

  /** Takes no further jobs; `run` resolves when those that run have ended. */
  stop(): void {
    this.#stopping = true;
  }

  /** Runs jobs until `stop` is called. */
  async run(): Promise<void> {
    await this.#register();
    const over = new AbortController();
    const beside = [this.#heartbeats(over.signal), this.#tellEnds(over.signal)];
    try {
      while (!this.#stopping) await this.#claim();
      while (this.#running.size > 0) await this.#anEnd();
    } finally {
      over.abort();
      await Promise.all(beside);
    }
    await this.#quietly(() => this.#client.ask("DELETE", `/v1/workers/${this.#id}`, undefined, { tries: 3 }));
  }

  async #tell<T>(verb: string, body: object, tries = 4, timeoutMs = 60_000): Promise<T> {
    return await this.#client.ask<T>("POST", `/v1/workers/${this.#id}/${verb}`, body, { tries, timeoutMs });
  }

  async #register(): Promise<void> {
    const { name, queues, leaseMs } = this.#options;
    const body = { name, queues, kinds: Object.keys(this.#handlers), lease_ms: leaseMs };
    while (!this.#stopping) {
      const askedAt = Date.now();
      try {
        this.#id = (await this.#client.ask<{ id: number }>("POST", "/v1/workers", body)).id;
        this.#heldUntil = askedAt + leaseMs;
        return;
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        this.#options.log(`${error.message}; trying again`);
        await sleep(1000);
      }
    }
  }

  /** Takes as many jobs as there are free places, and waits for some; jobs of a claim whose answer was lost are found, too. */
  async #claim(): Promise<void> {
    const free = this.#options.concurrency - this.#running.size;
    if (free <= 0) return await this.#anEnd();
    const knownAs = this.#id;
    let jobs: Claimed[] = [];
    try {
      const { queues, waitMs } = this.#options;
      const body = { queues, kinds: Object.keys(this.#handlers), limit: free, wait_ms: waitMs };
      jobs = (await this.#tell<{ jobs: Claimed[] }>("claim", body, 1, waitMs + 30_000)).jobs;
    } catch (error) {
      if (error instanceof Unreachable) {
        this.#options.log(`${error.message}; looking for what was claimed`);
        await sleep(1000);
        jobs = (await this.#held()).slice(0, free);
      } else {
        await this.#after(error, knownAs);
      }
    }
    for (const job of jobs) void this.#start(job);
  }

  /** What the store says we hold and we do not know of. */
  async #held(): Promise<Claimed[]> {
    try {
      const held = await this.#client.ask<{ jobs: Claimed[] }>("GET", `/v1/workers/${this.#id}/jobs`);
      return held.jobs.filter((job) => !this.#running.has(job.run));
    } catch {
      return [];
    }
  }

  async #after(error: unknown, knownAs: number): Promise<void> {
    if (!(error instanceof Problem) || error.code !== "worker_lost") {
      this.#options.log(`${error}; trying again`);
      return await sleep(1000);
    }
    if (this.#id !== knownAs) return;
    this.#options.log("the lease was lost; registering anew");
    // What runs is somebody else's now, or will be.
    this.#stopJobs("cancel");
    await this.#register();
  }

  async #start(claimed: Claimed): Promise<void> {
    const report = async (said: object) => {
      const answer = await this.#tell<{ accepted: boolean[] }>("report", { runs: [said] });
      return answer.accepted[0] === true;
    };
    const job = new Job(claimed, report);
    this.#running.set(job.run, job);
    this.#ends.push({ run: job.run, ...(await this.#endOf(job)) });
  }

  async #endOf(job: Job): Promise<{ outcome: string } & Record<string, unknown>> {
    try {
      return { outcome: "succeeded", result: (await this.#handlers[job.kind]!(job)) ?? null };
    } catch (error) {
      if (error instanceof Snooze) return { outcome: "snoozed", delay_ms: error.delayMs, message: error.message };
      if (error instanceof Cancelled || job.signal.aborted) return { outcome: job.signal.reason === "abort" ? "aborted" : "canceled" };
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
      if (ends.length === 0) {
        await sleep(5);
        continue;
      }
      await this.#tellUntilHeard(ends);
      for (const end of ends) this.#running.delete(end.run);
      for (const heard of this.#heard.splice(0)) heard();
    }
  }

  async #tellUntilHeard(ends: End[]): Promise<void> {
    const until = Date.now() + this.#options.leaseMs;
    while (Date.now() < until) {
      try {
        const { runs } = await this.#tell<{ runs: string[] }>("finish", { runs: ends });
        runs.forEach((said, n) => said === "fenced" && this.#options.log(`run ${ends[n]?.run} had moved on; its end was not taken`));
        return;
      } catch (error) {
        if (error instanceof Unreachable) {
          this.#options.log(`${error.message}; telling ends again`);
          continue;
        }
        const [end] = ends;
        if (ends.length > 1 || end === undefined) {
          for (const one of ends) await this.#tellUntilHeard([one]);
          return;
        }
        this.#options.log(`the end of run ${end.run} is not taken: ${error}`);
        const instead = { run: end.run, outcome: "failed", error_code: "end_not_taken", message: String(error).slice(0, 2000) };
        return await this.#quietly(() => this.#tell("finish", { runs: [instead] }));
      }
    }
    this.#options.log(`${ends.length} ends could not be told within the lease; their jobs are tried again`);
  }

  async #heartbeats(over: AbortSignal): Promise<void> {
    const every = this.#options.leaseMs / 3;
    for (;;) {
      await this.#quietly(() => sleep(every, undefined, { signal: over }));
      if (over.aborted) return;
      const [askedAt, knownAs] = [Date.now(), this.#id];
      try {
        const beat = await this.#tell<{ stops: { job: string; token: number; verb: string }[] }>("heartbeat", {}, 1, every);
        this.#heldUntil = askedAt + this.#options.leaseMs;
        for (const { job, token, verb } of beat.stops) this.#stopJobs(verb, `${job}.${token}.`);
      } catch (error) {
        if (!(error instanceof Unreachable)) await this.#after(error, knownAs);
        else if (Date.now() >= this.#heldUntil) this.#stopJobs("cancel");
      }
    }
  }

  #stopJobs(verb: string, run = ""): void {
    for (const job of this.#running.values()) if (job.run.startsWith(run)) job.stop(verb);
  }

  async #anEnd(): Promise<void> {
    await new Promise<void>((resolve) => this.#heard.push(resolve));
  }

  async #quietly(deed: () => Promise<unknown>): Promise<void> {
    await deed().catch(() => undefined);
  }
}
