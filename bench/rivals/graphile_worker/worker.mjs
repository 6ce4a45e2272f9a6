// graphile-worker in the protocol of bench/run.
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import { WORKERS, drainAll, enqueueAll, logged, main, sendAll, untilTerminated, url } from "../protocol.mjs";

const silent = new Logger(() => () => {});
// The settings of its page "Performance".
const fast = { concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
// Its defaults: without a local queue, which would leave more jobs locked after a crash.
const steady = { concurrentJobs: WORKERS, maxPoolSize: WORKERS + 1 };

const preset = (worker) => ({ worker: { connectionString: url, fileExtensions: [".js"], ...worker } });
const start = (worker, noop) => run({ preset: preset(worker), logger: silent, noHandleSignals: true, crontab: "", taskList: { noop } });

const utils = () => makeWorkerUtils({ connectionString: url, logger: silent, maxPoolSize: WORKERS });

await main({
  setup: () => runMigrations({ connectionString: url, logger: silent }),
  enqueue: async (jobs) => {
    const client = await utils();
    return enqueueAll(jobs, 5000, (payloads) => client.addJobs(payloads.map((payload) => ({ identifier: "noop", payload }))));
  },
  drain: (jobs) => drainAll(jobs, (ran) => start(fast, async () => ran())),
  send: async (rate, seconds) => {
    const client = await utils();
    return sendAll(rate, seconds, (payload) => client.addJob("noop", payload));
  },
  work: async (path, ms) => {
    const runner = await start(steady, logged(path, ms));
    await untilTerminated();
    await runner.stop();
  },
});
