/** Milepost in a transaction of postgres (Postgres.js). */

import { Milepost } from "../milepost.js";

/** The `sql` of `sql.begin(…)`. With the `sql` of the pool, each call is a separate transaction. */
type PostgresSql = { unsafe(sql: string, parameters: string[]): PromiseLike<readonly Record<string, unknown>[]> };

/** Returns Milepost's functions in this transaction. */
export function milepost(transaction: PostgresSql): Milepost {
  return new Milepost((sql, parameters) => transaction.unsafe(sql, [...parameters]));
}
