/** Milepost in a transaction of pg (node-postgres). */

import { Milepost } from "../milepost.js";

/** A client of pg. With a `Pool`, each call is a separate transaction. */
type PgClient = { query(sql: string, parameters: string[]): Promise<{ rows: Record<string, unknown>[] }> };

/** Returns Milepost's functions in the transaction of this client. */
export function milepost(client: PgClient): Milepost {
  return new Milepost(async (sql, parameters) => (await client.query(sql, [...parameters])).rows);
}
