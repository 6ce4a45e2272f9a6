"""huey on SQLite in the protocol of bench/run."""

import asyncio
import logging
import time

from huey import SqliteHuey
from protocol import URL, Log, enqueue_all, main, send_all, until_terminated

# `fsync` makes an enqueued task survive a power failure, as the other systems do by default.
huey = SqliteHuey("bench", filename=URL.removeprefix("sqlite:"), fsync=True)
logging.getLogger("huey").setLevel(logging.ERROR)
state = {"ran": 0, "log": None}


@huey.task()
def noop(job: dict) -> None:
    state["ran"] += 1
    if state["log"]:
        state["log"].started(job)
        if state["log"].pause:
            time.sleep(state["log"].pause)
            state["log"].ended(job)


async def setup() -> None:
    huey.storage.queue_size()


async def enqueue(jobs: int) -> dict:
    # There is no bulk call; each enqueue is a transaction.
    async def insert(payloads: list) -> None:
        for job in payloads:
            noop(job)

    return await enqueue_all(jobs, 1000, insert)


async def drain(jobs: int) -> dict:
    # A single thread: SQLite has one writer, and more threads only wait for each other.
    consumer = huey.create_consumer(workers=1, periodic=False)
    began = time.perf_counter()
    consumer.start()
    while state["ran"] < jobs or len(huey):
        await asyncio.sleep(0.005)
    seconds = time.perf_counter() - began
    consumer.stop(graceful=True)
    return {"jobs": state["ran"], "seconds": seconds}


async def send(rate: int, seconds: int) -> dict:
    async def one(job: dict) -> None:
        noop(job)

    return await send_all(rate, seconds, one)


async def work(path: str, ms: int) -> None:
    # Each worker is a thread that polls the file, so eight instead of the 32 coroutines of other systems.
    state["log"] = Log(path, ms)
    consumer = huey.create_consumer(workers=8, periodic=False)
    consumer.start()
    await until_terminated()
    consumer.stop(graceful=True)


main({"setup": setup, "enqueue": enqueue, "drain": drain, "send": send, "work": work})
