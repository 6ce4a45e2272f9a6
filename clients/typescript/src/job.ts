/** Running jobs, and the errors by which their handlers end them. */

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

/** @internal A claimed run, as the server returns it. Fields without a value are omitted. */
export type Claimed = Pick<Job, "id" | "kind" | "queue" | "payload" | "attempt" | "run"> &
  Partial<Pick<Job, "checkpoint" | "group" | "batch" | "traceparent">> & {
    max_attempts: number;
    created_at: string;
    timeout_ms?: number;
    nominal_at?: string;
    run_token?: number;
  };

/** @internal Why a job must stop; `lost`: its end is not reported. */
export type Reason = "cancel" | "abort" | "timeout" | "lost";

/**
 * A running job. `payload` is its input, `checkpoint` the last checkpoint of an earlier attempt, `traceparent` its parent span, `batch` the id of
 * the batch whose task it is, and `nominalAt` the tick of the schedule that created it, or the `nominal_at` of its batch. `runToken` is for
 * `Milepost.complete`, which ends the job in a transaction of the handler; `undefined`: the server does not send it.
 */
export class Job<Payload = Json> {
  readonly id: string;
  readonly kind: string;
  readonly queue: string;
  readonly payload: Payload;
  readonly checkpoint: Json | undefined;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly timeoutMs: number | undefined;
  readonly group: string | undefined;
  readonly batch: string | undefined;
  readonly createdAt: Date;
  readonly nominalAt: Date | undefined;
  readonly run: string;
  readonly runToken: number | undefined;
  readonly traceparent: string | undefined;
  /** @internal */
  reason: Reason | undefined;
  /**
   * @internal Whether the end is decided, whether it is reported, whether an open transaction of another program holds it, and whether the
   * handler has returned.
   */
  readonly is = { ended: false, told: false, held: false, returned: false };
  readonly #stop = new AbortController();
  /** Aborted when the job must stop; the reason is `cancel`, `abort`, `timeout` or `lost`. Pass it to long-running operations. */
  readonly signal = this.#stop.signal;

  /** @internal `holder`: the id of the worker that claimed the job. */
  constructor(
    claimed: Claimed, readonly holder: number, private readonly tell: (said: object) => Promise<boolean>,
    /** @internal */ readonly backoff: object | undefined,
  ) {
    [this.id, this.kind, this.queue, this.payload, this.checkpoint] = [claimed.id, claimed.kind, claimed.queue, claimed.payload as Payload, claimed.checkpoint];
    [this.attempt, this.maxAttempts, this.timeoutMs] = [claimed.attempt, claimed.max_attempts, claimed.timeout_ms];
    [this.group, this.batch, this.traceparent] = [claimed.group, claimed.batch, claimed.traceparent];
    [this.run, this.runToken, this.createdAt] = [claimed.run, claimed.run_token, new Date(claimed.created_at)];
    this.nominalAt = claimed.nominal_at === undefined ? undefined : new Date(claimed.nominal_at);
  }

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
export type Handler<Payload = Json> = (job: Job<Payload>) => Promise<Json | void> | Json | void;
