/** Tests of kinds with schemas of Zod and Valibot, against the server MILEPOST_URL. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { Client, defineKind, InvalidPayload, Worker } from "@milepost/client";
import type { Handler, StandardSchema } from "@milepost/client";
import * as v from "valibot";
import { z } from "zod";

const client = new Client(process.env["MILEPOST_URL"]);

const zod = defineKind("mail", z.object({ to: z.email(), copies: z.int().default(1), at: z.iso.datetime().transform((text) => new Date(text)) }));
const valibot = defineKind("mail", v.object({
  to: v.pipe(v.string(), v.email()), copies: v.optional(v.pipe(v.number(), v.integer()), 1), at: v.pipe(v.string(), v.isoTimestamp(), v.transform((text) => new Date(text))),
}));
const valid = { to: "ada@example.org", at: "2026-11-30T12:00:00.000Z" };

/** Starts a worker for jobs of kind `mail` on a new queue, which it returns. */
function work(t: TestContext, mail: Handler): string {
  const [queue, stop] = [randomUUID(), new AbortController()];
  const running = new Worker(client, { mail }, { queues: [queue], waitMs: 300, log: () => {} }).run({ signal: stop.signal });
  t.after(async () => {
    stop.abort();
    await running;
  });
  return queue;
}

for (const [name, mail] of Object.entries({ Zod: zod, Valibot: valibot })) {
  test(`${name}: a handler receives the payload with the defaults and conversions of its schema`, async (t) => {
    const queue = work(t, mail.handler((job) => {
      // The types of the schema.
      const { to, copies, at }: { to: string; copies: number; at: Date } = job.payload;
      job.check();
      return [to, copies + 1, at.getTime(), job.signal.aborted];
    }));
    const { id } = await client.create(await mail.job(valid, { queue }));
    const { payload, result } = await client.wait(id, 60_000);
    assert.deepEqual([payload, result], [valid, ["ada@example.org", 2, Date.parse(valid.at), false]]);
  });

  test(`${name}: a payload that does not match is refused before it is stored`, async () => {
    // @ts-expect-error: the schema has the type of the payload.
    await assert.rejects(mail.job({ to: 7, at: valid.at }), InvalidPayload);
    const refused = (error: unknown) => {
      assert.ok(error instanceof InvalidPayload && error.kind === "mail" && error.issues.length === 1);
      assert.match(error.message, /^the payload of a job of kind "mail" does not match its schema: to: /);
      return true;
    };
    await assert.rejects(mail.job({ ...valid, to: "nobody" }), refused);
  });

  test(`${name}: a stored payload that does not match fails the job without further attempts`, async (t) => {
    const queue = work(t, mail.handler(() => assert.fail("the handler must not run")));
    const { id } = await client.create({ kind: "mail", queue, payload: { ...valid, to: "nobody" } });
    const { state, attempt, last_failure } = await client.wait(id, 60_000);
    assert.deepEqual([state, attempt, last_failure?.code], ["failed", 1, "payload"]);
  });
}

test("a payload is checked as the JSON that the handler receives", async () => {
  const dated = defineKind("k", z.object({ at: z.date() }));
  await assert.rejects(dated.job({ at: new Date() }), InvalidPayload);
});

test("a schema may be asynchronous, and an error in it is not one of the payload", async (t) => {
  const schema = (validate: StandardSchema["~standard"]["validate"]): StandardSchema => ({ "~standard": { version: 1, vendor: "test", validate } });
  const slow = defineKind("mail", schema(async () => ({ value: "checked" })));
  const queue = work(t, slow.handler((job) => String(job.payload)));
  const { id } = await client.create(await slow.job(null, { queue }));
  assert.equal((await client.wait(id, 60_000)).result, "checked");
  const broken = defineKind("mail", schema(() => { throw new RangeError("no database"); }));
  await assert.rejects(broken.job(null), RangeError);
  const failing = work(t, broken.handler(() => null));
  const other = await client.create({ kind: "mail", queue: failing, max_attempts: 1 });
  assert.equal((await client.wait(other.id, 60_000)).last_failure?.code, "RangeError");
});
