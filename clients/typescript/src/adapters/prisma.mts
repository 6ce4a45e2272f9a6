export * from "./prisma.js";
