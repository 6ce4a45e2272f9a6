export * from "./kysely.js";
