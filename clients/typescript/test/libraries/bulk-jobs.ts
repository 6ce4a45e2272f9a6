/** Bulk jobs for the tests: a worker registers them, because SQL and HTTP cannot define one. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Client } from "@milepost/client";

const CONFIGURATION = `
store = "\${MILEPOST_STORE}"

[bulk.client_notify]
group = "client_notify"
source = "select id from client_invoice where library = :place and id > :cursor order by id limit :limit"
key = ["id"]
apply = "insert into client_invoice (test, library) select 'notified', 'bulk' from chunk"

[bulk.client_letter]
group = "client_letter"
columns = { id = "integer" }
apply = "insert into client_invoice (test, library) select 'letter', 'bulk' from chunk"
`;

/** Runs `milepost work` with a configuration that has the bulk jobs until they are registered. MILEPOST_BIN is the program. */
export async function registerBulkJobs(client: Client, store: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "milepost-"));
  await writeFile(join(folder, "milepost.toml"), CONFIGURATION);
  const worker = spawn(process.env["MILEPOST_BIN"] ?? "milepost", ["work"], { cwd: folder, env: { ...process.env, MILEPOST_STORE: store }, stdio: "inherit" });
  const ended = once(worker, "exit");
  try {
    while (!(await isRegistered(client))) {
      if (worker.exitCode !== null) throw new Error(`milepost work ended with ${worker.exitCode}`);
      await sleep(50);
    }
  } finally {
    worker.kill();
    await ended;
    await rm(folder, { recursive: true });
  }
}

async function isRegistered(client: Client): Promise<boolean> {
  const definitions = JSON.stringify(await client.ask("GET", "/v1/bulk-definitions"));
  return ["client_notify", "client_letter"].every((name) => definitions.includes(`"${name}"`));
}
