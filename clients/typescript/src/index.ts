/** Milepost client for TypeScript and JavaScript: creates and runs jobs through the HTTP API of `milepost serve`. */

export { Client, Problem, TimeoutError, Unreachable } from "./client.js";
export type { AskOptions, ClientOptions, Created, JobFilter, JobRow, JobState, JobView, Json, NewBatch, NewJob } from "./client.js";
export type { JobOperation } from "./operations.js";
export { Cancelled, Failed, Job, Snooze, Worker } from "./worker.js";
export type { Backoff, Handler, WorkerOptions } from "./worker.js";
