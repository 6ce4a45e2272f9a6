/** Errors of the SQL functions, by SQLSTATE, and where each database library keeps them. */

type ErrorOptionsOf = { code: string; detail?: string | undefined; hint?: string | undefined; cause?: unknown };

/**
 * A SQL function refused a call, and the transaction can only be rolled back. `code` is the SQLSTATE, `detail` and `hint` are those of PostgreSQL,
 * and `cause` is the error of the database library. Each SQLSTATE that the methods of `Milepost` can meet has a subclass.
 */
export class MilepostError extends Error {
  override readonly name: string = "MilepostError";
  readonly code: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;

  constructor(message: string, { code, detail, hint, cause }: ErrorOptionsOf) {
    super(hint === undefined ? message : `${message}: ${hint}`, { cause });
    [this.code, this.detail, this.hint] = [code, detail, hint];
  }
}

/** `MP001`: a job cannot be accepted as it is, a parameter of a bulk job is missing, or a reason or a wait is too long. */
export class InvalidJob extends MilepostError {
  override readonly name = "InvalidJob";
}

/** `MP002`: the job does not exist. */
export class NoSuchJob extends MilepostError {
  override readonly name = "NoSuchJob";
}

/** `MP003`: the state of the job, which is in `detail`, does not allow the operation. */
export class IllegalTransition extends MilepostError {
  override readonly name = "IllegalTransition";
}

/** `MP004`: `milepost move` is filling the store. */
export class StoreMoves extends MilepostError {
  override readonly name = "StoreMoves";
}

/** `MP007`: no worker has registered a bulk job of this name. */
export class NoSuchBulk extends MilepostError {
  override readonly name = "NoSuchBulk";
}

/** `MP008`: the targets of the bulk job are in a file, so only `milepost bulk start --from` and HTTP can start it. */
export class BulkFromFile extends MilepostError {
  override readonly name = "BulkFromFile";
}

/** `MP010`: the DAG, or this version of it, does not exist. */
export class NoSuchDag extends MilepostError {
  override readonly name = "NoSuchDag";
}

/** `MP011`: the input of a batch or the result of a job cannot be accepted, or the input has a schema and `input_checked` is not set. */
export class InvalidInput extends MilepostError {
  override readonly name = "InvalidInput";
}

/** `MP015`: an event cannot be accepted as it is. */
export class InvalidEvent extends MilepostError {
  override readonly name = "InvalidEvent";
}

/** `MP016`: the sequence of the event does not follow the last one, which is in `detail`. */
export class SequenceRefused extends MilepostError {
  override readonly name = "SequenceRefused";
}

/** `MP017`: an event with this id and other content exists. */
export class EventIdTaken extends MilepostError {
  override readonly name = "EventIdTaken";
}

/** `MP018`: the inbox cannot accept the call as it is. */
export class InvalidInbox extends MilepostError {
  override readonly name = "InvalidInbox";
}

/** `40001` or `40P01`: a conflict with another transaction. Repeat the whole transaction. */
export class TransactionConflict extends MilepostError {
  override readonly name = "TransactionConflict";
}

/** `Milepost.complete` found that the run has lost its job. The transaction must be rolled back, so let this error leave it. */
export class Fenced extends Error {
  override readonly name = "Fenced";
}

const CLASSES: Readonly<Record<string, typeof MilepostError>> = {
  MP001: InvalidJob, MP002: NoSuchJob, MP003: IllegalTransition, MP004: StoreMoves, MP007: NoSuchBulk, MP008: BulkFromFile, MP010: NoSuchDag,
  MP011: InvalidInput, MP015: InvalidEvent, MP016: SequenceRefused, MP017: EventIdTaken, MP018: InvalidInbox,
  "40001": TransactionConflict, "40P01": TransactionConflict,
};

/** The members of an error of PostgreSQL, as the libraries pass them on. */
type DatabaseError = { code: string; message: string; detail?: string; hint?: string };

/** Returns the error of PostgreSQL in an error of a library: Drizzle wraps it as `cause`, TypeORM as `driverError`, Prisma below `meta`. */
function databaseError(error: unknown): DatabaseError | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { originalCode, originalMessage, cause, driverError, meta, code } = error as Record<string, unknown>;
  if (typeof originalCode === "string") return { ...error, code: originalCode, message: String(originalMessage) };
  const inner = (meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError;
  const found = [inner, driverError, cause].map(databaseError).find((one) => one !== undefined);
  // Codes of Prisma, such as P2010, are as long as a SQLSTATE.
  return found ?? (typeof code === "string" && /^(?!P[1-9])[0-9A-Z]{5}$/.test(code) ? (error as DatabaseError) : undefined);
}

/** Returns the SQLSTATE of an error that any of the supported libraries throws, or `undefined` if PostgreSQL did not report one. */
export function sqlstateOf(error: unknown): string | undefined {
  return databaseError(error)?.code;
}

/** @internal Returns the error of Milepost for an error of a statement, or the same error if it is not one of Milepost. */
export function mapped(error: unknown, sql: string): unknown {
  const found = databaseError(error);
  if (!found || !(found.code in CLASSES || found.code.startsWith("MP"))) return error;
  const { code, detail, hint } = found;
  // Knex puts the statement before the message.
  const message = found.message.startsWith(`${sql} - `) ? found.message.slice(sql.length + 3) : found.message;
  return new (CLASSES[code] ?? MilepostError)(message, { code, detail, hint, cause: error });
}
