/** Milepost in a transaction of Knex, with its client `pg`. */

import { Milepost } from "../milepost.js";

/** A transaction of Knex. With `knex` itself, each call is a separate transaction. */
type KnexTransaction = { raw(sql: string, parameters: string[]): PromiseLike<{ rows: Record<string, unknown>[] }> };

/** Returns Milepost's functions in this transaction. */
export function milepost(transaction: KnexTransaction): Milepost {
  return new Milepost(async (sql, parameters) => (await transaction.raw(sql.replace(/\$\d+/g, "?"), [...parameters])).rows);
}
