"""procrastinate in the protocol of bench/run."""

import time

import procrastinate
from protocol import URL, WORKERS, Log, enqueue_all, main, send_all

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, min_size=4, max_size=WORKERS))
state = {"ran": 0, "log": None}


@app.task(name="noop", queue="bench")
async def noop(id: int, sent: int, pad: str) -> None:
    state["ran"] += 1
    if state["log"]:
        await state["log"].handle({"id": id, "sent": sent})


async def setup() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(jobs: int) -> dict:
    async with app.open_async():
        return await enqueue_all(jobs, 1000, lambda payloads: noop.batch_defer_async(*payloads))


async def drain(jobs: int) -> dict:
    # With wait=False, the worker returns when the queue is empty and the end of every job is stored.
    async with app.open_async():
        began = time.perf_counter()
        await app.run_worker_async(queues=["bench"], concurrency=WORKERS, wait=False)
        return {"jobs": state["ran"], "seconds": time.perf_counter() - began}


async def send(rate: int, seconds: int) -> dict:
    async with app.open_async():
        return await send_all(rate, seconds, lambda job: noop.defer_async(**job))


async def work(path: str, ms: int) -> None:
    # The task from "Retry stalled jobs" in its documentation, which runs it every ten minutes there; here every minute.
    @app.periodic(cron="* * * * *")
    @app.task(name="retry_stalled_jobs", queueing_lock="retry_stalled_jobs", pass_context=True)
    async def retry_stalled_jobs(context, timestamp):
        for job in await app.job_manager.get_stalled_jobs():
            await app.job_manager.retry_job(job)

    state["log"] = Log(path, ms)
    async with app.open_async():
        await app.run_worker_async(concurrency=WORKERS)


main({"setup": setup, "enqueue": enqueue, "drain": drain, "send": send, "work": work})
