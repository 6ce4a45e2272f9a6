/** Milepost in a transaction of Drizzle, with its drivers `node-postgres` and `postgres-js`. */

import { sql as drizzle } from "drizzle-orm";

import { Milepost } from "../milepost.js";

type Rows = readonly Record<string, unknown>[];

/** A transaction of Drizzle. With the database itself, each call is a separate transaction. `any`: the types of Drizzle differ between import and require. */
type DrizzleTransaction = { execute(query: any): PromiseLike<unknown> };

/** Returns Milepost's functions in this transaction. */
export function milepost(transaction: DrizzleTransaction): Milepost {
  return new Milepost(async (sql, parameters) => {
    const parts = sql.split(/\$\d+/).map((part) => drizzle.raw(part));
    const query = drizzle.join(parts.flatMap((part, n) => (n === 0 ? [part] : [drizzle.param(parameters[n - 1]), part])));
    const result = (await transaction.execute(query)) as Rows | { rows: Rows };
    return "rows" in result ? result.rows : result;
  });
}
