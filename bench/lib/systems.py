"""The measured systems: versions, settings, and the queries that count their unfinished jobs."""

from dataclasses import dataclass, field

POSTGRES, SQLITE = "PostgreSQL", "SQLite"
# The figures of a system, in the order in which they are measured.
THROUGHPUT, LATENCY, CRASH, IDLE = "throughput", "latency", "crash", "idle"
ALL = (THROUGHPUT, LATENCY, CRASH, IDLE)


@dataclass(frozen=True)
class System:
    """A measured system. `folder` contains its program; `unfinished` counts its jobs that have not ended, of `{jobs}` enqueued."""

    name: str
    store: str
    language: str
    version: str
    folder: str
    unfinished: str
    settings: str
    recovery: str
    # The program of `work`, `send`, …: "python", "node", "rust" or "" (only a benchmark command of the system itself).
    runtime: str
    # The system's own benchmark command for throughput: "milepost", "riverqueue" or "".
    own_bench: str = ""
    figures: tuple = field(default=ALL)


MILEPOST_SETTINGS = (
    "Throughput: `milepost bench jobs`, four callers that enqueue 1,000 jobs per transaction, one worker with a concurrency of"
    " 8,000 that claims 2,000 jobs at a time. Otherwise: a program with the Rust library, concurrency 32, other options default."
)
MILEPOST_RECOVERY = "Default: a lease of 30 s, renewed by heartbeats."

SYSTEMS = (
    System(
        "milepost", POSTGRES, "Rust", "of this repository", "milepost",
        "select count(*) as unfinished from milepost.live",
        MILEPOST_SETTINGS, MILEPOST_RECOVERY, "rust", "milepost",
    ),
    System(
        "riverqueue", POSTGRES, "Rust", "0.5.0", "riverqueue",
        "select count(*) as unfinished from river_job where state in"
        " ('available', 'pending', 'retryable', 'running', 'scheduled')",
        "Its own benchmark, `riverqueue bench -n JOBS`, with its defaults: 5,000 jobs per insertion, 2,000 workers, 50 connections."
        " `--skip-vacuum`, because the database is new.",
        "Not measured: the command runs no other jobs.", "", "riverqueue", (THROUGHPUT,),
    ),
    System(
        "graphile-worker", POSTGRES, "JavaScript", "0.18.0", "graphile_worker",
        "select count(*) as unfinished from graphile_worker._private_jobs",
        "Throughput: the settings of its page \"Performance\": `concurrentJobs: 24`, `maxPoolSize: 25`, `localQueue.size: 500`,"
        " `completeJobBatchDelay: 0`; `addJobs` with 5,000 jobs per call. Otherwise: `concurrentJobs: 32`, other options default.",
        "Default: jobs of a killed worker stay locked for 4 hours. Its paid extension, Worker Pro, recovers them sooner; it is not measured.",
        "node",
    ),
    System(
        "pg-boss", POSTGRES, "JavaScript", "12.38.0", "pg_boss",
        "select count(*) as unfinished from pgboss.job where name = 'bench' and state < 'completed'",
        "Throughput: `insert` with 5,000 jobs per call; four workers with `batchSize: 1000` and `burstWhenBatchFull`. Otherwise: two"
        " workers with `batchSize: 16`, because each notification wakes every worker. The queue notifies (`notify`, `useListenNotify`).",
        "`heartbeatSeconds: 30`; a monitor checks every 60 s (default). Without heartbeats, jobs expire after 15 minutes.", "node",
    ),
    System(
        "procrastinate", POSTGRES, "Python", "3.10.0", "procrastinate",
        "select count(*) as unfinished from procrastinate_jobs where queue_name = 'bench' and status in ('todo', 'doing')",
        "Asynchronous worker with `concurrency=32` and notifications; `batch_defer_async` with 1,000 jobs per call.",
        "Heartbeats every 10 s, stalled after 30 s (default), and the periodic task of its page \"Retry stalled jobs\", which runs every"
        " minute here and every ten minutes there.", "python",
    ),
    System(
        "pgqueuer", POSTGRES, "Python", "1.6.0", "pgqueuer",
        "select count(*) as unfinished from pgqueuer where status in ('queued', 'picked')",
        "asyncpg, uvloop, `pgq autovac`, durability `durable` (default). Throughput: five managers as in its `tools/benchmark.py`,"
        " `batch_size=100`; `enqueue` with 5,000 jobs per call. Otherwise: one manager, `batch_size=16`, `max_concurrent_tasks=32`.",
        "Default: `heartbeat_timeout` of 30 s, `dequeue_timeout` of 30 s.", "python",
    ),
    System(
        "awa", POSTGRES, "Rust, called from Python", "0.6.9", "awa",
        # The view lacks jobs that are claimed and not completed, so the completed ones are subtracted.
        "select {jobs} - count(*) as unfinished from awa.jobs where state = 'completed'",
        "The Python package. `enqueue_many_copy` with 5,000 jobs per call. Throughput: 256 workers of one queue. Otherwise: 32 workers.",
        "Default: heartbeats, and the rescue of jobs whose heartbeat is stale.", "python",
    ),
    System(
        "absurd", POSTGRES, "JavaScript", "0.5.0", "absurd",
        "select count(*) as unfinished from absurd.t_bench where state not in ('completed', 'failed', 'cancelled')",
        "`pollInterval: 0.1`. Tasks are spawned 5,000 per statement, because there is no bulk call. Throughput: `concurrency: 100`,"
        " `batchSize: 100`. Otherwise: `concurrency: 32`.",
        "`claimTimeout: 30`; the default of the SDK is 120 s.", "node",
    ),
    System(
        "milepost (SQLite)", SQLITE, "Rust", "of this repository", "milepost",
        "select count(*) as unfinished from milepost_live",
        MILEPOST_SETTINGS, MILEPOST_RECOVERY, "rust", "milepost",
    ),
    System(
        "huey", SQLITE, "Python", "3.5.4", "huey",
        "select count(*) as unfinished from task",
        "`SqliteHuey(fsync=True)`. One enqueue per transaction, because there is no bulk call. Throughput: one worker thread. Otherwise:"
        " eight worker threads.",
        "None: a task is removed from the queue before it runs.", "python",
    ),
)


def named(names: str | None) -> tuple:
    """Returns the systems with these names, or all."""
    if not names:
        return SYSTEMS
    chosen = [name.strip() for name in names.split(",")]
    known = {system.name for system in SYSTEMS}
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise SystemExit(f"unknown system {unknown[0]!r}; expected: {', '.join(sorted(known))}")
    return tuple(system for system in SYSTEMS if system.name in chosen)
