/** Client of the HTTP API. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import type { JobOperation } from "./operations.js";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export type JobState = "blocked" | "pending" | "running" | "retry_wait" | "failed" | "aborted" | "succeeded" | "canceled" | "skipped";

/** States of jobs that do not run again unless an operator requests it. */
const ENDED: readonly JobState[] = ["succeeded", "failed", "aborted", "canceled", "skipped"];

/** Pauses between the requests of `Client.wait`. */
const WAIT_PAUSE_MIN_MS = 100;
const WAIT_PAUSE_MAX_MS = 1000;

/** What happens to a job that holds the key, and how long a job holds it. Times are in milliseconds. */
export interface OnDuplicate {
  action: "keep" | "replace" | "debounce" | "throttle";
  delay_ms?: number;
  max_delay_ms?: number;
  period_ms?: number;
  unique?: "forever" | "live" | "waiting";
  unique_for_ms?: number;
}

/**
 * A job to be created. With a `key` the request can be repeated: at most one job of a kind has a given key, unless `on_duplicate` decides
 * otherwise. `start_at`: a `Date`, or text in the format of ISO 8601.
 */
export interface NewJob {
  kind: string;
  payload?: Json;
  queue?: string;
  key?: string;
  group?: string;
  priority?: number;
  max_attempts?: number;
  timeout_ms?: number;
  delay_ms?: number;
  start_at?: string | Date;
  on_duplicate?: OnDuplicate;
}

/** A batch to be started. `nominal_at` is the tick for which it is started, `nominal_zone` the time zone of the tick's date. */
export interface NewBatch {
  dag: string;
  input?: Json;
  key?: string;
  nominal_at?: string | Date;
  nominal_zone?: string;
}

/** What a request for a job did. Without `on_duplicate`: `created` or `kept`. */
export type Outcome = "created" | "kept" | "replaced" | "moved" | "dropped";

/** The job or batch that a request created. `duplicate`: it already existed under the same key. `outcome`: of jobs over HTTP, and of those with `on_duplicate`. */
export type Created = { id: string; duplicate: boolean; outcome?: Outcome };

/** A job in a list. Times are ISO 8601. */
export interface JobRow {
  id: string;
  kind: string;
  queue: string;
  state: JobState;
  priority: number;
  attempt: number;
  max_attempts: number;
  key: string | null;
  group: string | null;
  created_at: string;
  nominal_at: string | null;
  ready_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  worker: number | null;
  token: number;
}

/** A job with its payload, its result, and the reason why it is not running. */
export interface JobView extends JobRow {
  payload: Json;
  result: Json;
  progress: { done: number; total: number | null; message: string | null } | null;
  checkpoint: Json;
  traceparent?: string;
  last_failure: { at: string; code: string | null; message: string | null } | null;
  stop_requested: boolean;
  waiting_for: ({ reason: string } & { [name: string]: Json }) | null;
}

/** Filter for lists of jobs. */
export type JobFilter = { state?: JobState } & { [name in "kind" | "queue" | "key" | "error" | "payload"]?: string } & {
  [name in "created_from" | "created_before" | "failed_from"]?: string | Date;
};

/** The server rejected the request. `code` is stable; `at` is the position in the request; `retryAfterMs` is the requested wait. */
export class Problem extends Error {
  override readonly name = "Problem";

  constructor(readonly status: number, readonly code: string, readonly detail: string, readonly at?: string, readonly retryAfterMs = 0) {
    super(`${code}: ${detail}${at ? ` (at ${at})` : ""}`);
  }
}

/** The server did not answer. It may or may not have executed the request. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** A job did not end within the time limit of `Client.wait`. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/** Returns whether the same request may succeed later. */
export function passes(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof Problem && ([408, 429].includes(error.status) || error.status >= 500));
}

/** Returns how long to wait before a retry: longer after each failure, and at least as long as the server requests (up to 30 s). */
export function pauseAfter(error: unknown, failures: number): number {
  const said = error instanceof Problem ? error.retryAfterMs : 0;
  return Math.max(Math.min(said, 30_000), 200 * 2 ** Math.min(failures, 4));
}

/** @internal Returns a list of an answer. Throws `Unreachable` if it is missing, as in an answer of a proxy: the result is then unknown. */
export function listOf<T>(answer: unknown, name: string): T[] {
  const list = (answer as Record<string, unknown> | null | undefined)?.[name];
  if (Array.isArray(list)) return list as T[];
  throw foreign(answer, `list ${name}`);
}

/** Returns a value of an answer. Throws `Unreachable` if it is missing or of another type. */
function valueOf<T>(answer: unknown, name: string, type: "string" | "boolean"): T {
  const value = (answer as Record<string, unknown> | null | undefined)?.[name];
  if (typeof value === type) return value as T;
  throw foreign(answer, `${type} ${name}`);
}

/** @internal Returns a date as text. Throws a `RangeError` that names an invalid one, which JSON would contain as `null`. */
export function isoOf(date: Date, name: string): string {
  if (Number.isNaN(date.getTime())) throw new RangeError(`${name} is not a valid date`);
  return date.toISOString();
}

/** @internal Returns a number. Throws a `RangeError` if JSON would contain it as `null`. */
export function finite(number: number, name: string): number {
  if (!Number.isFinite(number)) throw new RangeError(`${name} is not a number that can be sent: ${number}`);
  return number;
}

/** Returns values with their times as text, and checks their numbers. */
function withTimes(given: object): Record<string, unknown> {
  const sent = (name: string, value: unknown) =>
    value instanceof Date ? isoOf(value, name) : typeof value === "number" ? finite(value, name) : value;
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, sent(name, value)] as const));
}

function foreign(answer: unknown, missing: string): Unreachable {
  return new Unreachable(`the answer is not from Milepost: it has no ${missing}: ${String(JSON.stringify(answer)).slice(0, 200)}`);
}

/** `token`: the access token, if the server requires one. `timeoutMs`: time limit of a request. */
export type ClientOptions = { token?: string; timeoutMs?: number };

/** `tries`: the maximum number of attempts while the server does not answer. */
export type AskOptions = { headers?: Record<string, string>; tries?: number; timeoutMs?: number };

/** A client of the server at `url`. */
export class Client {
  /** @internal The server's address. */
  readonly address: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;

  constructor(url = "http://127.0.0.1:7070", options: ClientOptions = {}) {
    const place = URL.canParse(url) ? new URL(url) : undefined;
    if (!place || !["http:", "https:"].includes(place.protocol)) {
      throw new TypeError(`${JSON.stringify(url)} is not the address of a server, such as http://127.0.0.1:7070`);
    }
    // `fetch` refuses such addresses with a message that contains the password.
    if (place.username !== "" || place.password !== "") throw new TypeError("the address of a server must not contain a user name or a password");
    this.address = url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
  }

  /** Creates a job; resolves when it is durable. Retries if necessary, with an `Idempotency-Key`, so that only one job is created. */
  async create(job: NewJob): Promise<Created> {
    const headers: Record<string, string> = job.key === undefined ? { "Idempotency-Key": randomUUID() } : {};
    return await this.#create("/v1/jobs", withTimes(job), headers);
  }

  /** Creates up to 5,000 jobs: all or none. */
  async createMany(jobs: readonly NewJob[]): Promise<Created[]> {
    const headers = { "Idempotency-Key": randomUUID() };
    const body = { jobs: jobs.map(withTimes) };
    return listOf<Created>(await this.ask("POST", "/v1/jobs/create-many", body, { headers, tries: 4 }), "jobs");
  }

  /** Starts a batch of a DAG; resolves when it is durable. Retries if necessary, like `create`. */
  async startBatch(batch: NewBatch): Promise<Created> {
    const headers: Record<string, string> = batch.key === undefined ? { "Idempotency-Key": randomUUID() } : {};
    return await this.#create("/v1/batches", withTimes(batch), headers);
  }

  /**
   * Sends a signal to a batch; resolves when it is durable, to `accepted`, `duplicate` (the batch has a signal with this `id`), or `late` (the task has
   * ended). The task that waits for it succeeds, with `payload` as its output. Retries if necessary.
   */
  async signal(batch: string, name: string, more: { payload?: unknown; id?: string; reason?: string } = {}): Promise<string> {
    const body = { name, id: randomUUID(), ...more };
    const answer = await this.ask("POST", `/v1/batches/${encodeURIComponent(batch)}/signals`, body, { tries: 4 });
    return valueOf(answer, "result", "string");
  }

  /** Returns a job. */
  async job(id: string): Promise<JobView> {
    return await this.ask("GET", `/v1/jobs/${encodeURIComponent(id)}`, undefined, { tries: 4 });
  }

  /**
   * Returns a job, like `job`, as soon as its state is `succeeded`, `failed`, `aborted`, `canceled` or `skipped`. Requests that may succeed later
   * are repeated. Throws `TimeoutError` if the job has not ended within `timeoutMs`.
   */
  async wait(id: string, timeoutMs: number): Promise<JobView> {
    const until = performance.now() + timeoutMs;
    for (let pause = WAIT_PAUSE_MIN_MS; ; pause = Math.min(pause * 2, WAIT_PAUSE_MAX_MS)) {
      const tryMs = Math.max(Math.min(this.#timeoutMs, until - performance.now()), WAIT_PAUSE_MAX_MS);
      let last: string;
      let cause: unknown;
      try {
        const view = await this.ask<JobView>("GET", `/v1/jobs/${encodeURIComponent(id)}`, undefined, { timeoutMs: tryMs });
        last = `its state is ${valueOf<string>(view, "state", "string")}`;
        if (ENDED.includes(view.state)) return view;
      } catch (error) {
        if (!passes(error)) throw error;
        [last, cause, pause] = [String(error), error, Math.max(pause, pauseAfter(error, 0))];
      }
      const left = until - performance.now();
      if (left <= 0) throw new TimeoutError(`job ${id} has not ended within ${timeoutMs} ms: ${last}`, { cause });
      await sleep(Math.min(pause, left));
    }
  }

  /** Yields jobs, newest first. */
  async *jobs(filter: JobFilter = {}): AsyncGenerator<JobRow, void> {
    const given = withTimes(filter) as Record<string, string>;
    let cursor: { cursor?: string } = {};
    for (;;) {
      const query = new URLSearchParams({ ...given, ...cursor });
      const page = await this.ask<{ next_cursor?: string }>("GET", `/v1/jobs?${query}`, undefined, { tries: 4 });
      yield* listOf<JobRow>(page, "items");
      if (page.next_cursor === undefined) return;
      cursor = { cursor: page.next_cursor };
    }
  }

  /** Performs an operation on a job. Returns its state, or `stop_requested`. */
  async operate(id: string, operation: JobOperation, more: { reason?: string; grace_ms?: number; delay_ms?: number } = {}): Promise<string> {
    const answer = await this.ask("POST", `/v1/jobs/${encodeURIComponent(id)}/operate`, { operation, ...more });
    return valueOf(answer, "outcome", "string");
  }

  async #create(path: string, body: unknown, headers: Record<string, string>): Promise<Created> {
    const answer = await this.ask<Created>("POST", path, body, { headers, tries: 4 });
    valueOf(answer, "id", "string");
    valueOf(answer, "duplicate", "boolean");
    return answer;
  }

  /**
   * Sends a request. Throws `Problem` if the server rejects it, and `Unreachable` if all attempts remain unanswered. `body`: a value that can be
   * converted to JSON, or JSON as bytes.
   */
  async ask<T>(method: string, path: string, body?: unknown, options: AskOptions = {}): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        return (await this.#askOnce(method, path, body, options)) as T;
      } catch (error) {
        if (failures + 1 >= (options.tries ?? 1) || !passes(error)) throw error;
        await sleep(pauseAfter(error, failures));
      }
    }
  }

  async #askOnce(method: string, path: string, body: unknown, options: AskOptions): Promise<unknown> {
    const token = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    const headers = { "Content-Type": "application/json", ...token, ...options.headers };
    const text = body === undefined ? null : body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body);
    const limitMs = Math.min(Math.ceil(options.timeoutMs ?? this.#timeoutMs), 2 ** 31 - 1);
    const { response, answer } = await within(limitMs, async (signal) => {
      // A redirect would turn a POST into a GET.
      const response = await fetch(this.address + path, { method, headers, body: text, signal, redirect: "manual" });
      return { response, answer: await response.text() };
    }).catch((error: unknown) => {
      throw new Unreachable(`${this.address} does not answer: ${reason(error)}`, { cause: error });
    });
    return response.status === 204 ? undefined : read(response, answer);
  }
}

/**
 * Rejects after `limitMs`, regardless of the request. `AbortSignal.timeout` and `fetch` alone are not reliable: Node.js 18 holds their
 * signals weakly, so that a signal that was garbage-collected never aborts.
 */
async function within<T>(limitMs: number, request: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`no answer within ${limitMs} ms`);
      controller.abort(error);
      reject(error);
    }, limitMs);
  });
  try {
    return await Promise.race([request(controller.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

function read({ status, headers }: Response, answer: string): unknown {
  const retryAfterMs = Number(headers.get("Retry-After")) * 1000 || 0;
  let problem = new Problem(status, "not_milepost", `the answer is not from Milepost: ${answer.slice(0, 200)}`, undefined, retryAfterMs);
  try {
    const said = JSON.parse(answer);
    if (status < 300) return said;
    const { code, detail, at } = said as { code: unknown; detail: unknown; at?: string };
    if (typeof code === "string" && typeof detail === "string") problem = new Problem(status, code, detail, at, retryAfterMs);
  } catch {
    // The answer is not JSON, so it is not from Milepost.
  }
  throw problem;
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
