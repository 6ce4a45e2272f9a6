export * from "./knex.js";
