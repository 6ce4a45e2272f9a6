export * from "./typeorm.js";
