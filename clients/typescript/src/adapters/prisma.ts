/** Milepost in an interactive transaction of Prisma. */

import { Milepost } from "../milepost.js";

/** The client of `prisma.$transaction(async (tx) => …)`. With `prisma` itself, each call is a separate transaction. */
type PrismaTransaction = { $queryRawUnsafe(sql: string, ...parameters: string[]): PromiseLike<unknown> };

/** Returns Milepost's functions in this transaction. */
export function milepost(transaction: PrismaTransaction): Milepost {
  return new Milepost((sql, parameters) => transaction.$queryRawUnsafe(sql, ...parameters) as PromiseLike<Record<string, unknown>[]>);
}
