"""pgqueuer in the protocol of bench/run."""

import asyncio
import json
import signal
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode
from protocol import UNFINISHED, URL, WORKERS, Log, enqueue_all, main, send_all

# Five managers with a connection each, as in its tools/benchmark.py; a larger batch, as its page "Performance Tuning" recommends
# for short jobs.
MANAGERS, BATCH = 5, 100


async def pooled() -> Queries:
    return Queries(AsyncpgPoolDriver(await asyncpg.create_pool(dsn=URL, min_size=2, max_size=10)))


async def setup() -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(dsn=URL)))
    await queries.install()
    await queries.optimize_autovacuum()


def encoded(job: dict) -> bytes:
    return json.dumps(job).encode()


async def enqueue(jobs: int) -> dict:
    queries = await pooled()

    async def insert(payloads: list) -> None:
        await queries.enqueue(["noop"] * len(payloads), [encoded(p) for p in payloads], [0] * len(payloads))

    return await enqueue_all(jobs, 5000, insert)


async def drain(jobs: int) -> dict:
    ran = 0
    managers = [PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn=URL))) for _ in range(MANAGERS)]
    for manager in managers:

        @manager.entrypoint("noop")
        async def noop(job) -> None:
            nonlocal ran
            ran += 1

    began = time.perf_counter()
    await asyncio.gather(*(m.run(batch_size=BATCH, mode=QueueExecutionMode.drain) for m in managers))
    connection = await asyncpg.connect(dsn=URL)
    while await connection.fetchval(UNFINISHED):
        await asyncio.sleep(0.005)
    return {"jobs": ran, "seconds": time.perf_counter() - began}


async def send(rate: int, seconds: int) -> dict:
    queries = await pooled()
    return await send_all(rate, seconds, lambda job: queries.enqueue("noop", encoded(job)))


async def work(path: str, ms: int) -> None:
    log = Log(path, ms)
    manager = PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn=URL)))

    @manager.entrypoint("noop")
    async def noop(job) -> None:
        await log.handle(json.loads(job.payload))

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
    await manager.run(batch_size=WORKERS // 2, max_concurrent_tasks=WORKERS)


main({"setup": setup, "enqueue": enqueue, "drain": drain, "send": send, "work": work}, uvloop.run)
