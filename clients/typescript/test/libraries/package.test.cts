/** Tests of the installed package, in a CommonJS module. */

import assert = require("node:assert/strict");
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { Milepost, Snooze, Worker } from "@milepost/client";
import { milepost } from "@milepost/client/pg";

const manifest = JSON.parse(readFileSync(require.resolve("@milepost/client/package.json"), "utf8"));
const entries = Object.keys(manifest.exports).filter((entry) => entry !== "./package.json").map((entry) => "@milepost/client" + entry.slice(1));

/** Names that Node.js adds to an imported CommonJS module. */
const added = ["default", "module.exports", "__esModule"];

test("require and import have the same names and classes in every entry", async () => {
  assert.equal(entries.length, 8);
  for (const entry of entries) {
    const [required, imported] = [require(entry), await import(entry)];
    const names = Object.keys(required).sort();
    assert.ok(names.length > 0);
    assert.deepEqual(Object.keys(imported).filter((name) => !added.includes(name)).sort(), names, entry);
    for (const name of names) assert.equal(imported[name], required[name], `${entry} ${name}`);
  }
});

test("the types of a CommonJS module are those of the package", () => {
  const calls: Milepost = milepost({ query: async () => ({ rows: [] }) });
  assert.ok(calls instanceof Milepost && typeof Worker === "function" && new Snooze(1) instanceof Error);
});

test("the package has no dependencies, and only the adapter of Drizzle loads a library", () => {
  assert.equal(manifest.dependencies, undefined);
  const folder = dirname(require.resolve("@milepost/client/package.json"));
  const load = createRequire(join(folder, "package.json"));
  const before = new Set(Object.keys(load.cache));
  for (const entry of entries.filter((entry) => !entry.endsWith("/drizzle"))) load(entry);
  const others = Object.keys(load.cache).filter((file) => !before.has(file) && !file.startsWith(folder));
  assert.deepEqual(others, []);
});
