/** The API: jobs are created and looked at. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/** What JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export type JobState = "blocked" | "pending" | "running" | "retry_wait" | "failed" | "aborted" | "succeeded" | "canceled" | "skipped";

export type JobOperation = "cancel" | "abort" | "resume" | "retry" | "rerun" | "snooze" | "skip" | "mark" | "release";

/** A job to be created. With a `key` that can be repeated: at most one job of a kind ever has it. */
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

/** A batch to be started. `nominal_at` is the tick that it is for (ISO 8601), `nominal_zone` the time zone of the tick's date. */
export interface NewBatch {
  dag: string;
  input?: Json;
  key?: string;
  nominal_at?: string;
  nominal_zone?: string;
}

/** The job or batch that stands for a request; `duplicate`: it was there before, under the same key. */
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

/** A job with its payload, its result, and why it does not run now. */
export interface JobView extends JobRow {
  payload: Json;
  result?: Json;
  last_failure: { at: string; code: string | null; message: string | null } | null;
  waiting_for?: Json;
}

/** Which jobs to list. */
export type JobFilter = { state?: JobState } & { [name in "kind" | "queue" | "key" | "error" | "payload"]?: string };

/** The server cannot do what was asked. `code` is stable; `at` says where in the request; `retryAfterMs` when to ask again. */
export class Problem extends Error {
  override readonly name = "Problem";

  constructor(readonly status: number, readonly code: string, readonly detail: string, readonly at?: string, readonly retryAfterMs = 0) {
    super(`${code}: ${detail}${at ? ` (at ${at})` : ""}`);
  }
}

/** The server did not answer; whether it did what was asked is not known. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** Whether the same request may be taken later. */
export function passes(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof Problem && ([408, 429].includes(error.status) || error.status >= 500));
}

/** How long to wait before it is tried again: longer after each failure, and as long as the server says, up to 30 s. */
export function pauseAfter(error: unknown, failures: number): number {
  const said = error instanceof Problem ? error.retryAfterMs : 0;
  return Math.max(Math.min(said, 30_000), 200 * 2 ** Math.min(failures, 4));
}

/** @internal A list of an answer. Throws `Unreachable` for an answer without it, as of a proxy: it is not known what the server did. */
export function listOf<T>(answer: unknown, name: string): T[] {
  const list = (answer as Record<string, unknown> | null | undefined)?.[name];
  if (Array.isArray(list)) return list as T[];
  throw new Unreachable(`the answer is not Milepost's: it has no list ${name}: ${String(JSON.stringify(answer)).slice(0, 200)}`);
}

/** `token`: when the server asks for one. `timeoutMs`: how long a request may take. */
export type ClientOptions = { token?: string; timeoutMs?: number };

/** `tries`: how often it is asked while the server does not answer. */
export type AskOptions = { headers?: Record<string, string>; tries?: number; timeoutMs?: number };

/** Speaks to the server at `url`. */
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

  /** Creates a job; resolves when it is durable. Tried again if need be: under an `Idempotency-Key`, so that there is one in any case. */
  async create(job: NewJob): Promise<Created> {
    const headers: Record<string, string> = job.key === undefined ? { "Idempotency-Key": randomUUID() } : {};
    return await this.ask("POST", "/v1/jobs", job, { headers, tries: 4 });
  }

  /** Creates up to 5,000 jobs, all or none. */
  async createMany(jobs: readonly NewJob[]): Promise<Created[]> {
    const headers = { "Idempotency-Key": randomUUID() };
    const answer = await this.ask<{ jobs: Created[] }>("POST", "/v1/jobs/create-many", { jobs }, { headers, tries: 4 });
    return answer.jobs;
  }

  /** Starts a batch of a DAG; resolves when it is durable. Tried again if need be, as `create` is. */
  async startBatch(batch: NewBatch): Promise<Created> {
    const headers: Record<string, string> = batch.key === undefined ? { "Idempotency-Key": randomUUID() } : {};
    return await this.ask("POST", "/v1/batches", batch, { headers, tries: 4 });
  }

  /** A job. */
  async job(id: string): Promise<JobView> {
    return await this.ask("GET", `/v1/jobs/${encodeURIComponent(id)}`, undefined, { tries: 4 });
  }

  /** Jobs, the newest first. */
  async *jobs(filter: JobFilter = {}): AsyncGenerator<JobRow, void> {
    let cursor: { cursor?: string } = {};
    for (;;) {
      const query = new URLSearchParams({ ...filter, ...cursor });
      const page = await this.ask<{ items: JobRow[]; next_cursor?: string }>("GET", `/v1/jobs?${query}`, undefined, { tries: 4 });
      yield* page.items;
      if (page.next_cursor === undefined) return;
      cursor = { cursor: page.next_cursor };
    }
  }

  /** Does something to a job; answers its state, or `stop_requested`. */
  async operate(id: string, operation: JobOperation, more: { reason?: string; grace_ms?: number; delay_ms?: number } = {}): Promise<string> {
    const answer = await this.ask<{ outcome: string }>("POST", `/v1/jobs/${encodeURIComponent(id)}/operate`, { operation, ...more });
    return answer.outcome;
  }

  /** One request. Throws `Problem` for what the server refuses, `Unreachable` when it does not answer after all tries. */
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
    const text = body === undefined ? null : JSON.stringify(body);
    const limitMs = Math.min(Math.ceil(options.timeoutMs ?? this.#timeoutMs), 2 ** 31 - 1);
    const { response, answer } = await within(limitMs, async (signal) => {
      const response = await fetch(this.#base + path, { method, headers, body: text, signal });
      return { response, answer: await response.text() };
    }).catch((error: unknown) => {
      throw new Unreachable(`${this.#base} does not answer: ${reason(error)}`, { cause: error });
    });
    return response.status === 204 ? undefined : read(response, answer);
  }
}

/**
 * Rejects after `limitMs`, whatever becomes of the request. Neither `AbortSignal.timeout` nor `fetch` alone can be relied on: Node.js 18
 * holds their signals weakly, so that a collected signal never aborts.
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
  let problem = new Problem(status, "not_milepost", `the answer is not Milepost's: ${answer.slice(0, 200)}`, undefined, retryAfterMs);
  try {
    const said = JSON.parse(answer);
    if (status < 400) return said;
    const { code, detail, at } = said as { code: unknown; detail: unknown; at?: string };
    if (typeof code === "string" && typeof detail === "string") problem = new Problem(status, code, detail, at, retryAfterMs);
  } catch {
    // Not JSON: not Milepost's.
  }
  throw problem;
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
