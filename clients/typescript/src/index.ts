/**
 * Milepost client for TypeScript and JavaScript. `Client` and `Worker` use the HTTP API of `milepost serve`; `Milepost` calls the SQL functions in
 * a transaction of the application, which the adapters in the subpaths of this package provide.
 */

export { Client, Problem, TimeoutError, Unreachable } from "./client.js";
export type { AskOptions, ClientOptions, Created, JobFilter, JobRow, JobState, JobView, Json, NewBatch, NewJob } from "./client.js";
export {
  BulkFromFile, EventIdTaken, Fenced, IllegalTransition, InvalidEvent, InvalidInbox, InvalidInput, InvalidJob, MilepostError,
  NoSuchBulk, NoSuchDag, NoSuchJob, SequenceRefused, sqlstateOf, StoreMoves, TransactionConflict,
} from "./errors.js";
export { Cancelled, Failed, Job, Snooze } from "./job.js";
export type { Handler } from "./job.js";
export { defineKind, InvalidPayload, JobKind } from "./kind.js";
export type { JobSettings } from "./kind.js";
export { Milepost } from "./milepost.js";
export type { Emitted, EnqueuedJob, NewBulkRun, NewEvent, Received, ReceivedEvent, StartedBatch } from "./milepost.js";
export type { JobOperation } from "./operations.js";
export type { RunSql } from "./sql.js";
export type { InferInput, InferOutput, Issue, StandardSchema } from "./standard-schema.js";
export { Worker } from "./worker.js";
export type { Backoff, WorkerOptions } from "./worker.js";
