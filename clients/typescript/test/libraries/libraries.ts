/** The libraries under test, each with a transaction that has Milepost's functions and inserts an invoice by the library's own means. */

import { milepost as drizzleMilepost } from "@milepost/client/drizzle";
import { milepost as knexMilepost } from "@milepost/client/knex";
import { milepost as kyselyMilepost } from "@milepost/client/kysely";
import { milepost as pgMilepost } from "@milepost/client/pg";
import { milepost as postgresMilepost } from "@milepost/client/postgres";
import { milepost as prismaMilepost } from "@milepost/client/prisma";
import { milepost as typeormMilepost } from "@milepost/client/typeorm";
import type { Milepost } from "@milepost/client";
import { PrismaPg } from "@prisma/adapter-pg";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { drizzle as drizzlePostgres } from "drizzle-orm/postgres-js";
import { pgTable, text } from "drizzle-orm/pg-core";
import knexOf from "knex";
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { DataSource, EntitySchema } from "typeorm";

import { PrismaClient } from "./generated/client.js";

/** A transaction: Milepost's functions in it, and an insert of an invoice. */
export type Transaction = { milepost: Milepost; insert: (invoice: Invoice) => Promise<unknown> };
export type Invoice = { test: string; library: string };

/** A library with a pool of connections. `without`: Milepost's functions, each in a separate transaction. */
export type Library = {
  transaction: <T>(run: (transaction: Transaction) => Promise<T>, isolation?: "repeatable read") => Promise<T>;
  without: Milepost;
  close: () => Promise<unknown>;
};

export const store = process.env["MILEPOST_STORE"] ?? "postgres://postgres@127.0.0.1/milepost";

const invoices = pgTable("client_invoice", { test: text().notNull(), library: text().notNull() });
const Invoices = new EntitySchema<Invoice & { id: number }>({
  name: "client_invoice",
  columns: { id: { type: Number, primary: true, generated: true }, test: { type: String }, library: { type: String } },
});

function openPg(): Library {
  const pool = new pg.Pool({ connectionString: store });
  return {
    without: pgMilepost(pool),
    close: () => pool.end(),
    transaction: async (run, isolation) => {
      const client = await pool.connect();
      try {
        await client.query(isolation ? `begin isolation level ${isolation}` : "begin");
        const insert = ({ test, library }: Invoice) => client.query("insert into client_invoice (test, library) values ($1, $2)", [test, library]);
        const result = await run({ milepost: pgMilepost(client), insert });
        await client.query("commit");
        return result;
      } catch (error) {
        await client.query("rollback");
        throw error;
      } finally {
        client.release();
      }
    },
  };
}

function openPostgres(): Library {
  const sql = postgres(store, { transform: postgres.camel });
  return {
    without: postgresMilepost(sql),
    close: () => sql.end(),
    transaction: async (run, isolation) =>
      (await sql.begin(isolation ? `isolation level ${isolation}` : "read write", async (tx) => {
        return await run({ milepost: postgresMilepost(tx), insert: async (invoice) => await tx`insert into client_invoice ${tx(invoice)}` });
      })) as never,
  };
}

function openKnex(): Library {
  const knex = knexOf({ client: "pg", connection: store });
  return {
    without: knexMilepost(knex),
    close: () => knex.destroy(),
    transaction: (run, isolationLevel) =>
      knex.transaction(
        (trx) => run({ milepost: knexMilepost(trx), insert: async (invoice) => await trx("client_invoice").insert(invoice) }),
        isolationLevel && { isolationLevel },
      ),
  };
}

function openKysely(): Library {
  type Tables = { clientInvoice: Invoice };
  // The plugin renames the columns of results.
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: store }) }), plugins: [new CamelCasePlugin()] });
  return {
    without: kyselyMilepost(db),
    close: () => db.destroy(),
    transaction: (run, isolation) =>
      db.transaction().setIsolationLevel(isolation ?? "read committed").execute((trx) => {
        return run({ milepost: kyselyMilepost(trx), insert: (invoice) => trx.insertInto("clientInvoice").values(invoice).execute() });
      }),
  };
}

function openDrizzle(): Library {
  const pool = new pg.Pool({ connectionString: store });
  const db = drizzlePg(pool);
  return {
    without: drizzleMilepost(db),
    close: () => pool.end(),
    transaction: (run, isolationLevel) =>
      db.transaction(
        (tx) => run({ milepost: drizzleMilepost(tx), insert: async (invoice) => await tx.insert(invoices).values(invoice) }),
        isolationLevel && { isolationLevel },
      ),
  };
}

function openDrizzleOverPostgres(): Library {
  const sql = postgres(store);
  const db = drizzlePostgres(sql);
  return {
    without: drizzleMilepost(db),
    close: () => sql.end(),
    transaction: (run, isolationLevel) =>
      db.transaction(
        (tx) => run({ milepost: drizzleMilepost(tx), insert: async (invoice) => await tx.insert(invoices).values(invoice) }),
        isolationLevel && { isolationLevel },
      ),
  };
}

function openPrisma(): Library {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: store }) });
  return {
    without: prismaMilepost(prisma),
    close: () => prisma.$disconnect(),
    transaction: (run, isolation) =>
      prisma.$transaction(
        (tx) => run({ milepost: prismaMilepost(tx), insert: (data) => tx.invoice.create({ data }) }),
        isolation && { isolationLevel: "RepeatableRead" },
      ),
  };
}

function openTypeorm(): Library {
  const source = new DataSource({ type: "postgres", url: store, entities: [Invoices] });
  const ready = source.initialize();
  return {
    // The data source connects before the first call.
    without: typeormMilepost({ query: async (sql, parameters) => (await ready).query(sql, parameters) }),
    close: async () => (await ready).destroy(),
    transaction: async (run, isolation) =>
      (await ready).transaction(isolation ? "REPEATABLE READ" : "READ COMMITTED", (manager) => {
        return run({ milepost: typeormMilepost(manager), insert: (invoice) => manager.insert(Invoices, invoice) });
      }),
  };
}

export const libraries: { readonly [name: string]: () => Library } = {
  pg: openPg,
  postgres: openPostgres,
  Knex: openKnex,
  Kysely: openKysely,
  Drizzle: openDrizzle,
  "Drizzle over postgres": openDrizzleOverPostgres,
  Prisma: openPrisma,
  TypeORM: openTypeorm,
};
