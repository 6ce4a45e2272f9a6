// Follows a tutorial with the packed client, block by block, in an empty folder: `node test/tutorial.mjs express-prisma.md`, or `typescript-worker.md`.
// The module documentation of crates/cli/tests/integration/tutorials.rs explains the blocks. DATABASE_URL is an empty PostgreSQL database; `milepost`,
// `psql` and `curl` are on the PATH. The ports are 7070 and 3000, or MILEPOST_PORT and SHOP_PORT.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const END_OF_BLOCK = "-- end of the block, status ";
const OUTPUT_MAX_MS = 60_000;

const client = fileURLToPath(new URL("..", import.meta.url));
const { MILEPOST_PORT = "7070", SHOP_PORT = "3000" } = process.env;
const page = readFileSync(join(client, "../../docs/tutorials", process.argv[2]), "utf8")
  .replaceAll("3000", SHOP_PORT)
  .replaceAll("127.0.0.1:7070", `127.0.0.1:${MILEPOST_PORT}`);

const folder = mkdtempSync(join(tmpdir(), "milepost-tutorial-"));
// `prisma generate` does not run the schema engine, but loads it from the Internet if no program is named.
const env = { PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true", MILEPOST_LISTEN: `127.0.0.1:${MILEPOST_PORT}`, ...process.env };

/** Packs the client into the folder, and installs it if the tutorial does not. */
function pack() {
  execFileSync("npm", ["run", "build"], { cwd: client, stdio: "inherit" });
  const file = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: client, encoding: "utf8" }).trim();
  if (!page.includes(file)) execFileSync("npm", ["install", "--silent", `./${file}`], { cwd: folder });
}

/** Starts a shell. Returns a function that runs a block in it and returns the output. */
function startShell() {
  const shell = spawn("bash", { cwd: folder, env, detached: true, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: shell.stdout })[Symbol.asyncIterator]();
  const run = async (block) => {
    // No command may read the blocks that follow.
    shell.stdin.write(`{\n${block}} < /dev/null\necho "${END_OF_BLOCK}$?"\n`);
    for (let output = ""; ; ) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the shell ended after: ${output}`);
      // The output may end without a line break.
      const [rest, status] = value.split(END_OF_BLOCK);
      if (status === undefined) output += `${value}\n`;
      else if (status === "0") return output + rest;
      else throw new Error(`status ${status}: ${block}${output}${rest}`);
    }
  };
  return { run, kill: () => process.kill(-shell.pid, "SIGKILL") };
}

/** Returns whether an output is the expected one, in which … is any text. */
function isLike(output, expected) {
  const parts = expected.trimEnd().split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^]*")}$`).test(output.trimEnd());
}

/** Follows the blocks of the page. A command that only shows something is repeated until its output is the expected one. */
async function follow(run) {
  let [command, output, compared] = ["", "", 0];
  for (const [, info, block] of page.matchAll(/^```(.*)\n([^]*?)^```$/gm)) {
    if (info === "sh") [command, output] = [block, await run(block)];
    else if (info === "sh background") await run(`{\n${block}} >&2 &\n`);
    else if (info === "text") {
      const onlyShows = /^(milepost .*jobs list|psql -At|sort sent)/.test(command);
      for (const began = Date.now(); onlyShows && !isLike(output, block) && Date.now() - began < OUTPUT_MAX_MS; output = await run(command)) await sleep(200);
      if (!isLike(output, block)) throw new Error(`the output of\n${command}is\n${output}instead of\n${block}`);
      compared += 1;
    } else throw new Error(`${JSON.stringify(info)} is not a kind of block in a tutorial`);
  }
  if (compared < 4) throw new Error(`only ${compared} outputs were compared`);
}

pack();
const shell = startShell();
try {
  const began = Date.now();
  await follow(shell.run);
  if (page.includes("npx tsx")) await shell.run("npx tsc --noEmit --module nodenext --target es2022 --strict --skipLibCheck --allowImportingTsExtensions *.ts\n");
  console.log(`followed ${process.argv[2]} in ${Math.round((Date.now() - began) / 1000)} s`);
} finally {
  shell.kill();
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}
