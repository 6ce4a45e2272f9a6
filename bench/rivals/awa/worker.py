"""awa in the protocol of bench/run, through its Python package, whose worker is written in Rust."""

import asyncio
import time
from dataclasses import dataclass

import psycopg
from awa import AsyncClient
from protocol import UNFINISHED, URL, WORKERS, Log, enqueue_all, main, send_all, until_terminated

QUEUE = "bench"


@dataclass
class Noop:
    id: int
    sent: int
    pad: str


def client() -> AsyncClient:
    return AsyncClient(URL, max_connections=20)


async def setup() -> None:
    # The first worker of a new installation activates the storage that its documentation recommends.
    made = client()
    await made.migrate()

    @made.task(Noop, queue=QUEUE)
    async def noop(job) -> None:
        pass

    await made.start([(QUEUE, 1)])
    await asyncio.sleep(1)
    await made.shutdown()


async def enqueue(jobs: int) -> dict:
    made = client()
    return await enqueue_all(
        jobs, 5000, lambda payloads: made.enqueue_many_copy([Noop(**p) for p in payloads], queue=QUEUE)
    )


async def drain(jobs: int) -> dict:
    ran = 0
    made = client()

    @made.task(Noop, queue=QUEUE)
    async def noop(job) -> None:
        nonlocal ran
        ran += 1

    connection = await psycopg.AsyncConnection.connect(URL, autocommit=True)
    began = time.perf_counter()
    await made.start([(QUEUE, 256)])
    while ran < jobs:
        await asyncio.sleep(0.002)
    while (await (await connection.execute(UNFINISHED)).fetchone())[0]:
        await asyncio.sleep(0.005)
    seconds = time.perf_counter() - began
    await made.shutdown()
    return {"jobs": ran, "seconds": seconds}


async def send(rate: int, seconds: int) -> dict:
    made = client()
    return await send_all(rate, seconds, lambda job: made.insert(Noop(**job), queue=QUEUE))


async def work(path: str, ms: int) -> None:
    log = Log(path, ms)
    made = client()

    @made.task(Noop, queue=QUEUE)
    async def noop(job) -> None:
        await log.handle({"id": job.args.id, "sent": job.args.sent})

    await made.start([(QUEUE, WORKERS)])
    await until_terminated()
    await made.shutdown()


main({"setup": setup, "enqueue": enqueue, "drain": drain, "send": send, "work": work})
