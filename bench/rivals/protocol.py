"""The protocol of bench/run for rivals in Python: arguments, payloads, the log of starts, and the wait for the last completion."""

import asyncio
import json
import os
import signal
import sys
import time

URL = os.environ.get("DATABASE_URL", "")
UNFINISHED = os.environ.get("BENCH_UNFINISHED", "")
# Jobs that run at the same time in `work`, the same number for all systems.
WORKERS = 32


def now() -> int:
    """Returns the system's monotonic clock in microseconds: the same for all processes, and never adjusted."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def payload(number: int) -> dict:
    """Returns a payload of about 100 bytes with the time of the enqueue call in microseconds."""
    return {"id": number, "sent": now(), "pad": "x" * 60}


def main(commands: dict, run=asyncio.run) -> None:
    """Runs the subcommand that the arguments name, and prints its result."""
    name, *args = sys.argv[1:]
    result = run(commands[name](*(int(arg) if arg.isdigit() else arg for arg in args)))
    print(json.dumps(result or {}), flush=True)


async def enqueue_all(jobs: int, size: int, insert) -> dict:
    """Calls insert(payloads) for portions of `size` jobs; returns the jobs and the seconds."""
    began = time.perf_counter()
    for start in range(0, jobs, size):
        await insert([payload(n) for n in range(start, min(start + size, jobs))])
    return {"jobs": jobs, "seconds": time.perf_counter() - began}


async def send_all(rate: int, seconds: int, send) -> dict:
    """Calls send(payload) at a steady rate; a call does not wait for the one before."""
    began = time.perf_counter()
    pending = []
    for n in range(rate * seconds):
        await asyncio.sleep(max(0, began + n / rate - time.perf_counter()))
        pending.append(asyncio.create_task(send(payload(n))))
    await asyncio.gather(*pending)
    return {"jobs": len(pending)}


class Log:
    """A log of "id sent started" and, for jobs that take time, of "id" at the end. Each line is one write, which survives kill -9."""

    def __init__(self, path: str, ms: int) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.pause = ms / 1000

    def started(self, job: dict) -> None:
        os.write(self.file, f"{job['id']} {job['sent']} {now()}\n".encode())

    def ended(self, job: dict) -> None:
        os.write(self.file, f"{job['id']}\n".encode())

    async def handle(self, job: dict) -> None:
        self.started(job)
        if self.pause:
            await asyncio.sleep(self.pause)
            self.ended(job)


async def until_terminated() -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
