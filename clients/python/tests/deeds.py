"""Handlers of the tests, in a module that child processes can import."""

import asyncio
import os
import time
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

from milepost import Failed, Handlers, Job

handlers = Handlers()


class Color(Enum):
    RED = "red"


@dataclass
class Item:
    name: str
    price: Decimal


@dataclass
class Order:
    id: UUID
    at: datetime
    items: list[Item]
    color: Color | None = None
    weights: dict[str, float] = field(default_factory=dict)


@handlers.handler("order", priority=1, max_attempts=1)
def order(job: Job[Order]):
    """Returns what it was given, with the types of its parts."""
    given = job.payload
    assert isinstance(given.id, UUID) and isinstance(given.at, datetime) and isinstance(given.items[0].price, Decimal), given
    return given


@handlers.handler("process")
def process(job: Job):
    """Reports, and returns the id of its process."""
    if job.checkpoint is None:
        job.report(done=1, checkpoint={"row": 17})
        raise Failed("not yet", code="not_yet", delay_s=0.0)
    return {"process": os.getpid(), "row": job.checkpoint["row"], "prepared": os.environ.get("PREPARED")}


@handlers.handler("crash", max_attempts=1)
def crash(job: Job):
    os._exit(7)


@handlers.handler("orphan", max_attempts=1)
def orphan(job: Job[str]):
    """Dies, and leaves a process that it forked, whose id is in the file."""
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    Path(job.payload).write_text(str(child))
    os._exit(7)


@handlers.handler("wait", max_attempts=1)
def wait(job: Job[str]):
    """Reports, and waits until the file is gone."""
    job.report(done=1)
    while Path(job.payload).exists():
        time.sleep(0.02)


@handlers.handler("hang", max_attempts=1)
def hang(job: Job[str]):
    Path(job.payload).write_text(str(os.getpid()))
    time.sleep(600)


@handlers.handler("ask", max_attempts=1)
def ask(job: Job):
    while True:
        job.check()
        time.sleep(0.01)


@handlers.handler("twice")
async def twice(job: Job[int]):
    await job.areport(done=1)
    await asyncio.sleep(0.01)
    return 2 * job.payload


@handlers.handler("forever", max_attempts=1)
async def forever(job: Job):
    await asyncio.sleep(600)


@handlers.handler("exits", max_attempts=1)
async def exits(job: Job):
    raise SystemExit(1)


def prepare():
    os.environ["PREPARED"] = "yes"
