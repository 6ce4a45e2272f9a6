// absurd in the protocol of bench/run; `absurdctl init` has created its schema.
import { Absurd } from "absurd-sdk";
import pg from "pg";
import { WORKERS, drainAll, enqueueAll, logged, main, sendAll, untilTerminated, url } from "../protocol.mjs";

const QUEUE = "bench";
// The claim timeout is the lease: a killed worker's tasks run again after it, as in the SDK's default.
const fast = { concurrency: 100, batchSize: 100, claimTimeout: 120, pollInterval: 0.1 };
const steady = { concurrency: WORKERS, claimTimeout: 30, pollInterval: 0.1 };

const pool = new pg.Pool({ connectionString: url, max: WORKERS });
const app = new Absurd({ db: pool, queueName: QUEUE, log: { log() {}, info() {}, warn() {}, error: console.error } });
const start = (options, handle) => {
  app.registerTask({ name: "noop" }, handle);
  return app.startWorker(options);
};

await main({
  setup: () => app.createQueue(QUEUE),
  // There is no bulk call; its functions are SQL, so one statement spawns many tasks.
  enqueue: (jobs) => enqueueAll(jobs, 5000, (payloads) => pool.query(
    "select count(*) from jsonb_array_elements($2::jsonb) p, absurd.spawn_task($1, 'noop', p, '{}'::jsonb)",
    [QUEUE, JSON.stringify(payloads)],
  )),
  drain: (jobs) => drainAll(jobs, (ran) => start(fast, async () => { ran(); return null; })),
  send: (rate, seconds) => sendAll(rate, seconds, (payload) => app.spawn("noop", payload, { queue: QUEUE })),
  work: async (path, ms) => {
    const handle = logged(path, ms);
    const worker = await start(steady, async (payload) => { await handle(payload); return null; });
    await untilTerminated();
    await worker.close();
  },
});
