export * from "./pg.js";
