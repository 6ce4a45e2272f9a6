/** The operations on a job. Made from the code of the server; ARCHITECTURE.md says how. */
export type JobOperation = "retry" | "resume" | "rerun" | "release" | "snooze" | "skip" | "mark" | "abort" | "cancel";
