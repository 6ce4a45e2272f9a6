/** Statements that call the SQL functions: every argument is bound as text and cast, so that each library binds it in the same way. */

import { finite, isoOf } from "./client.js";

/** Runs a statement, with parameters `$1`, `$2` and so on that are texts, and returns its rows. */
export type RunSql = (sql: string, parameters: readonly string[]) => PromiseLike<readonly Record<string, unknown>[]>;

type Scalar = "text" | "int" | "bigint" | "boolean" | "uuid" | "timestamptz" | "json" | "jsonb";

/** The PostgreSQL type of an argument, and its value. An argument without a value is omitted, so that it has its default. */
type Argument = readonly [type: Scalar | `${Scalar}[]`, value: unknown];

/** Returns a statement that selects `columns` from the result `r` of a function. Its parameters occur once each, in order. */
export function callOf(fn: string, columns: string, given: Readonly<Record<string, Argument>>): { sql: string; parameters: string[] } {
  const parameters: string[] = [];
  const passed: string[] = [];
  for (const [name, [type, value]] of Object.entries(given)) {
    const text = encoded(type, value, name);
    if (text !== null) passed.push(`${name} => cast(cast($${parameters.push(text)} as text) as ${type})`);
  }
  return { sql: `select ${columns} from milepost.${fn}(${passed.join(", ")}) as r`, parameters };
}

/** Returns an argument as PostgreSQL reads it; `null`: it has no value, as an array in which no element has one. */
function encoded(type: string, value: unknown, name: string): string | null {
  if (type.endsWith("[]")) {
    const elements = (value as readonly unknown[]).map((element) => encoded(type.slice(0, -2), element, name));
    return elements.every((element) => element === null) ? null : `{${elements.map(quoted).join()}}`;
  }
  // `null` is a value of JSON.
  if (value === undefined || (value === null && !type.startsWith("json"))) return null;
  if (type === "timestamptz") return value instanceof Date ? isoOf(value, name) : zoned(String(value), name);
  if (typeof value === "number") return String(finite(value, name));
  if (!type.startsWith("json")) return String(value);
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) throw new TypeError(`${name}: a ${typeof value} has no JSON`);
  return json;
}

/** Returns a time. Throws a `RangeError` if it has no time zone: PostgreSQL would read it in that of the session. */
function zoned(time: string, name: string): string {
  if (/(?:[Zz]|[+-]\d\d:?\d\d)\s*$/.test(time)) return time;
  throw new RangeError(`${name} has no time zone: ${JSON.stringify(time)}; append Z for UTC, or an offset such as +01:00`);
}

/** Returns an element of the text of an array. */
function quoted(element: string | null): string {
  return element === null ? "null" : `"${element.replace(/["\\]/g, "\\$&")}"`;
}
