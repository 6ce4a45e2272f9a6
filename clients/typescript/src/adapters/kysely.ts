/** Milepost in a transaction of Kysely, with its `PostgresDialect`. */

import { Milepost } from "../milepost.js";

/** A compiled statement of Kysely. */
type Compiled = {
  sql: string;
  parameters: readonly unknown[];
  query: { kind: "RawNode"; sqlFragments: readonly string[]; parameters: readonly [] };
  queryId: { queryId: string };
};

/** A transaction of Kysely. With the `Kysely` itself, each call is a separate transaction. */
type KyselyTransaction = { executeQuery(query: Compiled): Promise<{ rows: unknown[] }> };

/** Returns Milepost's functions in this transaction. */
export function milepost(transaction: KyselyTransaction): Milepost {
  return new Milepost(async (sql, parameters) => {
    const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] } as const;
    const { rows } = await transaction.executeQuery({ sql, parameters, query, queryId: { queryId: "milepost" } });
    return rows as Record<string, unknown>[];
  });
}
