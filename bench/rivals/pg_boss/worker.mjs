// pg-boss in the protocol of bench/run.
import { PgBoss } from "pg-boss";
import { WORKERS, drainAll, enqueueAll, logged, main, sendAll, untilTerminated, url } from "../protocol.mjs";

const QUEUE = "bench";
// Large batches, fetched without a pause while they come back full.
const fast = { batchSize: 1000, localConcurrency: 4, burstWhenBatchFull: true };
// Every notification wakes every worker, so two workers with a larger batch rather than one worker per job.
const steady = { batchSize: WORKERS / 2, localConcurrency: 2, burstWhenBatchFull: true };

async function boss(options = {}) {
  const made = new PgBoss({ connectionString: url, useListenNotify: true, max: 10, ...options });
  made.on("error", (error) => console.error(error));
  await made.start();
  return made;
}

// A sender needs neither supervision nor the notification channel.
const sender = () => boss({ supervise: false, schedule: false, useListenNotify: false });

await main({
  // Without heartbeats, jobs of a killed worker expire after 15 minutes.
  setup: async () => (await boss()).createQueue(QUEUE, { notify: true, heartbeatSeconds: 30 }),
  enqueue: async (jobs) => {
    const client = await sender();
    return enqueueAll(jobs, 5000, (payloads) => client.insert(QUEUE, payloads.map((data) => ({ data }))));
  },
  drain: (jobs) => drainAll(jobs, async (ran) => {
    const worker = await boss();
    await worker.work(QUEUE, fast, async (batch) => { batch.forEach(ran); });
  }),
  send: async (rate, seconds) => {
    const client = await sender();
    return sendAll(rate, seconds, (payload) => client.send(QUEUE, payload));
  },
  work: async (path, ms) => {
    const worker = await boss();
    const handle = logged(path, ms);
    await worker.work(QUEUE, steady, async (batch) => { await Promise.all(batch.map((job) => handle(job.data))); });
    await untilTerminated();
    await worker.stop();
  },
});
