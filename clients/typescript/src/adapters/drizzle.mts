export * from "./drizzle.js";
