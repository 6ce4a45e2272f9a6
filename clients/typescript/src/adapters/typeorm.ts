/** Milepost in a transaction of TypeORM. */

import { Milepost } from "../milepost.js";

/** The entity manager of `dataSource.transaction(…)`, or a query runner. With a data source, each call is a separate transaction. */
type TypeormTransaction = { query(sql: string, parameters: string[]): Promise<unknown> };

/** Returns Milepost's functions in this transaction. */
export function milepost(transaction: TypeormTransaction): Milepost {
  return new Milepost((sql, parameters) => transaction.query(sql, [...parameters]) as Promise<Record<string, unknown>[]>);
}
