"""The job that a handler receives, and the exceptions by which a handler ends it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")

STOPPED = {"cancel": "canceled", "abort": "aborted"}  # Outcome of a run by stop request.


class Snooze(Exception):
    """Raised by a handler: releases the job for the given time; the attempt does not count."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(why)
        self.delay_ms, self.why = whole_ms(seconds), why


class Failed(Exception):
    """Raised by a handler: the attempt failed with this error code. For any other exception, the code is the name of its class.
    `retryable=False`: no further attempt follows. `delay_s`: the next attempt waits at least this long, longer if the backoff of the kind is longer."""

    def __init__(self, message: str, code: str = "failed", retryable: bool = True, delay_s: float | None = None) -> None:
        super().__init__(message)
        self.code, self.retryable, self.delay_s = code, retryable, delay_s
        self.delay = {} if delay_s is None else {"delay_ms": whole_ms(delay_s)}


@dataclass(frozen=True)
class Backoff:
    """How long a job waits after a failed attempt: `base_s`, doubled with each failure, up to `cap_s`. `jitter`: the random share of the
    wait, from 0 for none to 1 for any wait from zero to double."""

    base_s: float = 1.0
    cap_s: float = 3600.0
    jitter: float = 0.1

    def _body(self) -> dict[str, Any]:
        return {"base_ms": whole_ms(self.base_s), "cap_ms": whole_ms(self.cap_s), "jitter": float(self.jitter)}


class Cancelled(BaseException):
    """Raised by `Job.check`: a stop was requested, the time limit was exceeded, or this worker has lost the job. Not an `Exception`, so that
    `except Exception` in a handler does not catch it."""


class Fenced(Cancelled):
    """Raised by the functions `complete`: the job no longer runs with this run token, or was stopped. The transaction must be rolled back, as
    the context managers of all database libraries do when an exception leaves them."""


class Link(Protocol):
    """What a job needs of the worker that runs it."""

    def _tell(self, holder: int, verb: str, body: Any, answers: str, tries: int = 1, timeout_s: float | None = None) -> Any:
        """Sends a request for a worker and returns the list `answers` of the response."""


@dataclass
class Job(Generic[T]):
    """A running job. `payload` is its input, `checkpoint` the last checkpoint of an earlier attempt, `traceparent` its parent span, `batch` the
    id of the batch whose task it is. `run_token` is for `complete`, which ends the job in a transaction of the handler; `None`: the
    server does not send it."""

    id: str
    kind: str
    queue: str
    payload: T
    checkpoint: Any
    attempt: int
    max_attempts: int
    timeout_ms: int | None
    group: str | None
    batch: str | None
    run: str
    run_token: int | None
    traceparent: str | None
    _created_at: str = field(repr=False)  # Times as the server sends them.
    _nominal_at: str | None = field(repr=False)
    _worker: Link = field(repr=False)
    _holder: int = field(repr=False)  # The id of the worker that claimed the job.
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _reason: str = ""  # Why it must stop: `cancel`, `abort`, `timeout` or `lost` (its end is not reported).
    _interrupt: Callable[[], object] | None = field(default=None, repr=False)  # Interrupts an async handler.
    _ended: bool = False  # Whether the end is decided.
    _told: bool = False  # Whether the end is reported, or must not be.
    _held: bool = False  # Whether an open transaction of another program holds the end.
    _returned: bool = False  # Whether the handler has returned.

    @property
    def created_at(self) -> datetime:
        """When the job was created."""
        return datetime.fromisoformat(self._created_at)

    @property
    def nominal_at(self) -> datetime | None:
        """The tick of the schedule that created the job, or the `nominal_at` of its batch."""
        return None if self._nominal_at is None else datetime.fromisoformat(self._nominal_at)

    @property
    def stop_requested(self) -> bool:
        """Whether the job must stop. Long-running handlers should read this or call `check`."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raises `Cancelled` if the job must stop."""
        if self._stop.is_set():
            raise Cancelled(self._reason)

    def report(self, done: int | None = None, total: int | None = None, message: str | None = None, checkpoint: Any = None) -> None:
        """Reports progress, and a checkpoint for the next attempt. Raises `Cancelled` if the job has left this run."""
        said: dict[str, Any] = {"run": self.run}
        if done is not None:
            said["progress"] = {"done": done, "total": total, "message": message}
        if checkpoint is not None:
            said["checkpoint"] = checkpoint
        if self._reason in ("lost", "timeout") or not self._worker._tell(self._holder, "report", {"runs": [said]}, "accepted", 4)[0]:
            self._ask_to_stop("lost")
            self.check()

    async def areport(
        self, done: int | None = None, total: int | None = None, message: str | None = None, checkpoint: Any = None,
    ) -> None:
        """Does the same as `report`, from an async handler."""
        await asyncio.to_thread(self.report, done, total, message, checkpoint)

    def _ask_to_stop(self, reason: str) -> None:
        if self._reason != "lost":
            self._reason = reason
        self._stop.set()
        if self._interrupt is not None:
            self._interrupt()


def whole_ms(seconds: float) -> int:
    """Returns a delay in whole milliseconds. The server reduces long delays to a hundred years; longer ones than this are not integers there."""
    return min(max(int(float(seconds) * 1000), 0), 2**63)
