/** The part of Standard Schema 1 (https://standardschema.dev) that this package uses, so that it needs no dependency. */

/** A schema of Zod, Valibot, ArkType or another library. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type Result<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

/** Why a value does not match. */
export interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of the values that a schema accepts. */
export type InferInput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["input"];

/** The type of the values that a schema returns. */
export type InferOutput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];
