/** Kinds of jobs with a schema of their payload. */

import type { Json, NewJob } from "./client.js";
import { Failed } from "./job.js";
import type { Handler } from "./job.js";
import type { InferInput, InferOutput, Issue, StandardSchema } from "./standard-schema.js";

/** The payload of a job does not match the schema of its kind. `issues` are those of the schema's library. */
export class InvalidPayload extends Error {
  override readonly name = "InvalidPayload";

  constructor(readonly kind: string, readonly issues: readonly Issue[]) {
    super(`the payload of a job of kind ${JSON.stringify(kind)} does not match its schema: ${issues.map(described).join("; ")}`);
  }
}

/** Settings of a job other than its kind and payload. */
export type JobSettings = Omit<NewJob, "kind" | "payload">;

/** A kind of jobs whose payload has a schema; `defineKind` makes it. */
export class JobKind<Schema extends StandardSchema> {
  constructor(readonly kind: string, readonly schema: Schema) {}

  /**
   * Returns a job for `Milepost.enqueue` and `Client.create`. Throws `InvalidPayload` if the payload, as JSON, does not match the schema. The payload
   * is stored as it is given here: defaults and conversions of the schema apply when the handler reads it.
   */
  async job(payload: InferInput<Schema>, settings: JobSettings = {}): Promise<NewJob> {
    const stored = JSON.parse(JSON.stringify(payload ?? null)) as Json;
    await this.#read(stored);
    return { ...settings, kind: this.kind, payload: stored };
  }

  /**
   * Returns a handler whose `job.payload` is the output of the schema, with its defaults and conversions. A payload that does not match fails the
   * job with the code `payload`, and no attempt follows.
   */
  handler(run: Handler<InferOutput<Schema>>): Handler {
    return async (job) => {
      const payload = await this.#read(job.payload).catch((error: unknown) => {
        throw error instanceof InvalidPayload ? new Failed(error.message, { code: "payload", retryable: false }) : error;
      });
      // The same object, because a copy would have no private members.
      return await run(Object.assign(job as { payload: unknown }, { payload }) as Parameters<typeof run>[0]);
    };
  }

  async #read(payload: unknown): Promise<InferOutput<Schema>> {
    const result = await this.schema["~standard"].validate(payload);
    if (result.issues) throw new InvalidPayload(this.kind, result.issues);
    return result.value as InferOutput<Schema>;
  }
}

/** Defines a kind of jobs by its name and a schema of Zod, Valibot, ArkType or any other library that implements Standard Schema. */
export function defineKind<Schema extends StandardSchema>(kind: string, schema: Schema): JobKind<Schema> {
  return new JobKind(kind, schema);
}

/** Returns the place and the message of an issue. */
function described({ message, path = [] }: Issue): string {
  const names = path.map((part) => String(typeof part === "object" ? part.key : part));
  return names.length === 0 ? message : `${names.join(".")}: ${message}`;
}
