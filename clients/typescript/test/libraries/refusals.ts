/** Calls that the SQL functions refuse, one for each class of error. */

import { randomUUID } from "node:crypto";

import {
  BulkFromFile, EventIdTaken, IllegalTransition, InvalidEvent, InvalidInbox, InvalidInput, InvalidJob, MilepostError, NoSuchBulk, NoSuchDag, NoSuchJob,
  SequenceRefused,
} from "@milepost/client";
import type { Client, Milepost, NewEvent } from "@milepost/client";

export type Refusal = {
  call: (milepost: Milepost) => Promise<unknown>;
  of: typeof MilepostError;
  code: string;
  message: RegExp;
  detail?: string;
  hint?: RegExp;
};

/** Prepares and returns the calls. */
export async function refusals(client: Client): Promise<Refusal[]> {
  const [dag, absent] = [randomUUID(), randomUUID()];
  await client.ask("POST", "/v1/dags", { name: dag, tasks: { a: { kind: dag } }, input_schema: { type: "object" } });
  const { id } = await client.create({ kind: "k", queue: randomUUID() });
  await client.operate(id, "cancel");
  const event = (more: Partial<NewEvent> = {}): NewEvent => ({ aggregate_type: "order", aggregate_id: absent, event_type: "a", ...more });
  const emitTwice = (more: Partial<NewEvent>) => async (milepost: Milepost) => {
    await milepost.emit(event({ event_id: absent }));
    await milepost.emit(event(more));
  };
  return [
    { call: (m) => m.enqueueMany([{ kind: "k" }, { kind: "" }]), of: InvalidJob, code: "MP001", message: /^job 1 of the call: the kind must / },
    { call: (m) => m.cancel(absent), of: NoSuchJob, code: "MP002", message: new RegExp(`^there is no job ${absent}$`) },
    { call: (m) => m.cancel(id), of: IllegalTransition, code: "MP003", message: /^job /, detail: "canceled" },
    { call: (m) => m.startBulk({ name: "absent" }), of: NoSuchBulk, code: "MP007", message: /^there is no bulk job named 'absent'/, hint: /milepost work/ },
    { call: (m) => m.startBulk({ name: "client_letter" }), of: BulkFromFile, code: "MP008", message: /^the bulk job 'client_letter'/, hint: /--from/ },
    { call: (m) => m.startBatch({ dag: absent }), of: NoSuchDag, code: "MP010", message: /^there is no DAG /, detail: "dag" },
    { call: (m) => m.startBatch({ dag, input: {} }), of: InvalidInput, code: "MP011", message: /schema/ },
    { call: (m) => m.emit(event({ event_type: "" })), of: InvalidEvent, code: "MP015", message: /^event 0 of the call: /, detail: "name" },
    { call: emitTwice({ aggregate_seq: 7 }), of: SequenceRefused, code: "MP016", message: /./, detail: "gap 1" },
    { call: emitTwice({ event_id: absent, payload: 2 }), of: EventIdTaken, code: "MP017", message: /./, detail: absent },
    { call: (m) => m.once("", absent), of: InvalidInbox, code: "MP018", message: /consumer/, detail: "consumer" },
  ];
}
