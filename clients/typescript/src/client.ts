/** Client of the HTTP API. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import type { JobOperation } from "./operations.js";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export type JobState = "blocked" | "pending" | "running" | "retry_wait" | "failed" | "aborted" | "succeeded" | "canceled" | "skipped";

/** A job to be created. With a `key` the request can be repeated: at most one job of a kind has a given key. */
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
  start_at?: string;
}

/** A batch to be started. `nominal_at` is the tick for which it is started (ISO 8601), `nominal_zone` the time zone of the tick's date. */
export interface NewBatch {
  dag: string;
  input?: Json;
  key?: string;
  nominal_at?: string;
  nominal_zone?: string;
}

/** The job or batch that a request created. `duplicate`: it already existed under the same key. */
export type Created = { id: string; duplicate: boolean };

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
  ready_at: string | null;
  started_at: string | null;
  ended_at: string | null;
}

/** A job with its payload, its result, and the reason why it is not running. */
export interface JobView extends JobRow {
  payload: Json;
  result?: Json;
  last_failure: { at: string; code: string | null; message: string | null } | null;
  waiting_for?: Json;
}

/** Filter for lists of jobs. */
export type JobFilter = { state?: JobState } & { [name in "kind" | "queue" | "key" | "error" | "payload"]?: string };

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

function foreign(answer: unknown, missing: string): Unreachable {
  return new Unreachable(`the answer is not from Milepost: it has no ${missing}: ${String(JSON.stringify(answer)).slice(0, 200)}`);
}

/** `token`: the access token, if the server requires one. `timeoutMs`: time limit of a request. */
export type ClientOptions = { token?: string; timeoutMs?: number };

/** `tries`: the maximum number of attempts while the server does not answer. */
export type AskOptions = { headers?: Record<string, string>; tries?: number; timeoutMs?: number };

/** A client of the server at `url`. */
export class Client {
  readonly #base: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;

  constructor(url = "http://127.0.0.1:7070", options: ClientOptions = {}) {
    const place = URL.canParse(url) ? new URL(url) : undefined;
    if (!place || !["http:", "https:"].includes(place.protocol)) {
      throw new TypeError(`${JSON.stringify(url)} is not the address of a server, such as http://127.0.0.1:7070`);
    }
    this.#base = url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
  }

  /** Creates a job; resolves when it is durable. Retries if necessary, with an `Idempotency-Key`, so that only one job is created. */
  async create(job: NewJob): Promise<Created> {
    const headers: Record<string, string> = job.key === undefined ? { "Idempotency-Key": randomUUID() } : {};
    return await this.#create("/v1/jobs", job, headers);
  }

  /** Creates up to 5,000 jobs: all or none. */
  async createMany(jobs: readonly NewJob[]): Promise<Created[]> {
    const headers = { "Idempotency-Key": randomUUID() };
    return listOf<Created>(await this.ask("POST", "/v1/jobs/create-many", { jobs }, { headers, tries: 4 }), "jobs");
  }

  /** Starts a batch of a DAG; resolves when it is durable. Retries if necessary, like `create`. */
  async startBatch(batch: NewBatch): Promise<Created> {
    const headers: Record<string, string> = batch.key === undefined ? { "Idempotency-Key": randomUUID() } : {};
    return await this.#create("/v1/batches", batch, headers);
  }

  /** Returns a job. */
  async job(id: string): Promise<JobView> {
    return await this.ask("GET", `/v1/jobs/${encodeURIComponent(id)}`, undefined, { tries: 4 });
  }

  /** Yields jobs, newest first. */
  async *jobs(filter: JobFilter = {}): AsyncGenerator<JobRow, void> {
    let cursor: { cursor?: string } = {};
    for (;;) {
      const query = new URLSearchParams({ ...filter, ...cursor });
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
      const response = await fetch(this.#base + path, { method, headers, body: text, signal, redirect: "manual" });
      return { response, answer: await response.text() };
    }).catch((error: unknown) => {
      throw new Unreachable(`${this.#base} does not answer: ${reason(error)}`, { cause: error });
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
