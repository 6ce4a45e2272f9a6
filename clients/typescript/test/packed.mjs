// Packs the client, installs it from its file in an empty folder together with the libraries that it supports, checks the package, and runs the
// tests of `test/libraries` there. MILEPOST_URL is a server, MILEPOST_STORE the PostgreSQL database of its store, MILEPOST_BIN the program.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const client = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "milepost-packed-"));

// `prisma generate` does not run the schema engine, but loads it from the Internet if no program is named.
const env = { PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true", ...process.env };

function run(program, ...args) {
  execFileSync(program, args, { cwd: folder, env, stdio: "inherit" });
}

try {
  execFileSync("npm", ["run", "build"], { cwd: client, stdio: "inherit" });
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: client, encoding: "utf8" });
  const file = join(folder, packed.trim());
  const isSource = (path) => !/\/(node_modules|dist|generated)$/.test(path);
  cpSync(join(client, "test/libraries"), folder, { recursive: true, filter: isSource });
  run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund");
  run("npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", file);
  run("npx", "publint", file, "--strict");
  run("npx", "attw", file);
  run("npx", "prisma", "generate");
  run("npx", "tsc");
  const tests = ["adapters.test.js", "kinds.test.js", "package.test.cjs"].map((name) => join("dist", name));
  run("node", "--test", "--test-concurrency=1", "--test-reporter=tap", ...tests);
} finally {
  rmSync(folder, { recursive: true });
}
