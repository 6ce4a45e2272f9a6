"""Worker loop: claims jobs, runs handlers in threads, sends heartbeats, reports the ends of runs."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .client import Client, Problem, Unreachable, part, pause_after

log = logging.getLogger("milepost")

LOOK_EVERY_S = 30.0  # Interval between queries for the jobs that the server has assigned to this worker.
NOT_TAKEN = "end_not_taken"  # Error code of a run whose end is not JSON, or is rejected by the server.
CLAIM_MAX = 500  # Maximum number of jobs that the server returns for a claim.
ENDS_MAX, ENDS_BYTES_MAX = 500, 8 << 20  # Limits of a request that reports ends. The server accepts 1,000 ends and 16 MiB.
HELD_MAX = 2_000  # Maximum number of held ends that occupy no places.
HELD_PAUSE_MIN_S, HELD_PAUSE_MAX_S = 0.1, 1.0  # Pauses between reports of held ends.
LOGGED_MAX = 1_000  # Maximum number of characters of a failure's message in a line of the log.
STOPPED = {"cancel": "canceled", "abort": "aborted"}  # Outcome of a run by stop request.


class Snooze(Exception):
    """Raised by a handler: releases the job for the given time; the attempt does not count."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(why)
        self.delay_ms, self.why = _whole_ms(seconds), why


class Failed(Exception):
    """Raised by a handler: the attempt failed with this error code. For any other exception, the code is the name of its class.
    `retryable=False`: no further attempt follows. `delay_s`: the next attempt waits at least this long, longer if the backoff of the kind is longer."""

    def __init__(self, message: str, code: str = "failed", retryable: bool = True, delay_s: float | None = None) -> None:
        super().__init__(message)
        self.code, self.retryable, self.delay_s = code, retryable, delay_s
        self.delay = {} if delay_s is None else {"delay_ms": _whole_ms(delay_s)}


@dataclass(frozen=True)
class Backoff:
    """How long a job waits after a failed attempt: `base_s`, doubled with each failure, up to `cap_s`. `jitter`: the random share of the
    wait, from 0 for none to 1 for any wait from zero to double."""

    base_s: float = 1.0
    cap_s: float = 3600.0
    jitter: float = 0.1

    def _body(self) -> dict[str, Any]:
        return {"base_ms": _whole_ms(self.base_s), "cap_ms": _whole_ms(self.cap_s), "jitter": float(self.jitter)}


class Cancelled(BaseException):
    """Raised by `Job.check`: a stop was requested, the time limit was exceeded, or this worker has lost the job. Not an `Exception`, so that
    `except Exception` in a handler does not catch it."""


@dataclass
class Job:
    """A running job. `payload` is its input, `checkpoint` the last checkpoint of an earlier attempt, `traceparent` its parent span, `batch` the
    id of the batch whose task it is. `run_token` is for `milepost.complete`, which ends the job in a transaction of the handler; `None`: the
    server does not send it."""

    id: str
    kind: str
    queue: str
    payload: Any
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
    _worker: Worker = field(repr=False)
    _holder: int = field(repr=False)  # The id of the worker that claimed the job.
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _reason: str = ""  # Why it must stop: `cancel`, `abort`, `timeout` or `lost` (its end is not reported).
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

    def _ask_to_stop(self, reason: str) -> None:
        if self._reason != "lost":
            self._reason = reason
        self._stop.set()


CLAIMED = (
    "id", "kind", "queue", "payload", "checkpoint", "attempt", "max_attempts", "timeout_ms", "group", "batch", "run", "run_token", "traceparent",
)
Handler = Callable[[Job], Any]
End = tuple[Job, bytes]  # A job, and the end of its run as JSON.


class Worker:
    """Runs jobs of the kinds in `handlers`, at most `concurrency` at the same time, until `stop` is called. `wait_s`: how long a
    claim waits for jobs, and therefore how long an idle worker may take to stop. `backoffs`: how long jobs of these kinds wait after a failed
    attempt. The others wait 1 s, then 2 s, 4 s and so on up to an hour."""

    def __init__(
        self, client: Client, handlers: Mapping[str, Handler], *, queues: Sequence[str] = ("default",),
        concurrency: int = 4, lease_s: float = 15.0, wait_s: float = 5.0, name: str | None = None,
        backoffs: Mapping[str, Backoff] | None = None,
    ) -> None:
        self._client, self._handlers = client, dict(handlers)
        self._serves = {"queues": list(queues), "kinds": list(self._handlers)}
        self._backoffs = {kind: backoff._body() for kind, backoff in (backoffs or {}).items()}
        self._concurrency, self._lease_s, self._wait_s = concurrency, lease_s, wait_s
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"
        # Set while the worker holds a lease, and until when the lease certainly lasts.
        self._id: int | None = None
        self._held_until = 0.0
        # When to query the assigned jobs; 0 after a claim whose result is unknown.
        self._look_at = 0.0
        self._stopping = False  # Not an `Event`, because signal handlers call `stop`.
        self._changed = threading.Condition()  # Guards the following fields, and is notified when they change.
        self._running: dict[str, Job] = {}  # Jobs whose handler has not returned or whose end is not reported.
        self._ends: deque[End] = deque()
        self._held_ends: deque[End] = deque()  # Ends that open transactions of other programs hold.
        self._apart: set[str] = set()  # Runs whose handler has returned and whose end is held.

    def stop(self) -> None:
        """Stops claiming jobs; `run` returns when the running jobs have ended. Returns immediately."""
        self._stopping = True

    def run(self) -> None:
        """Runs jobs until `stop` is called, then waits for the running ones. Raises `Problem` if the server rejects the registration."""
        over = threading.Event()
        beside = [threading.Thread(target=loop, args=(over,), daemon=True) for loop in (self._heartbeats, self._tell_ends, self._tell_held)]
        for thread in beside:
            thread.start()
        try:
            while not self._stopping:
                self._go_on(self._id)
            with self._changed:
                self._changed.wait_for(lambda: not self._running)
        finally:
            over.set()
            for thread in beside:
                thread.join()
        if self._id is not None:
            with contextlib.suppress(Unreachable, Problem):
                self._client.ask("DELETE", f"/v1/workers/{self._id}", tries=3, timeout_s=5.0)
        log.info("worker %s has stopped", self._name)

    def _tell(self, holder: int, verb: str, body: Any, answers: str, tries: int = 1, timeout_s: float | None = None) -> Any:
        """Sends a request for a worker and returns the list `answers` of the response."""
        answer = self._client.ask("POST", f"/v1/workers/{holder}/{verb}", body, tries=tries, timeout_s=timeout_s)
        return part(answer, answers, list)

    def _go_on(self, holder: int | None) -> None:
        """Registers the worker, or claims jobs if it is registered. Waits after an error."""
        try:
            self._register() if holder is None else self._claim(holder)
        except (Unreachable, Problem) as error:
            if holder is None and not error.passes:
                raise
            if holder is not None and error.code == "worker_lost":
                return self._lose(holder, str(error))
            self._look_at = 0.0
            log.warning("%s; trying again", error)
            until = time.monotonic() + max(pause_after(error, 0), 1.0)
            while not self._stopping and time.monotonic() < until:
                time.sleep(0.05)

    def _register(self) -> None:
        body = {
            **self._serves,
            "name": self._name,
            "lease_ms": int(self._lease_s * 1000),
            "slots": self._concurrency,
            "backoffs": self._backoffs,
        }
        asked_at = time.monotonic()
        holder = part(self._client.ask("POST", "/v1/workers", body), "id", int)
        self._held_until, self._id = asked_at + self._lease_s, holder
        queues, kinds = (", ".join(self._serves[names]) for names in ("queues", "kinds"))
        log.info("worker %s is registered at %s; queues: %s; kinds: %s", self._name, self._client.address, queues, kinds)

    def _lose(self, holder: int, why: str) -> None:
        """Stops the running jobs, because other workers take them over, and reports nothing more about them. `run` registers again."""
        with self._changed:
            if self._id != holder:
                return
            self._id = None
            for job in self._running.values():
                if not job._ended:
                    job._ask_to_stop("lost")
        log.error("the lease is lost: %s; stopping the running jobs, which will be retried", why)

    def _free(self) -> int:
        """Returns the number of free places, for a caller that holds the lock. A place is occupied until the handler has returned and the end
        is reported. Held ends occupy places only beyond the first `HELD_MAX`."""
        return self._concurrency - len(self._running) + min(len(self._apart), HELD_MAX)

    def _claim(self, holder: int) -> None:
        """Claims up to as many jobs as there are free places, and waits if there are none."""
        with self._changed:
            self._changed.wait_for(lambda: self._free() > 0, timeout=1.0)
            free = min(self._free(), CLAIM_MAX)
        if free <= 0:
            return
        body = {**self._serves, "limit": free, "wait_ms": int(self._wait_s * 1000)}
        claimed: Any = self._adopt(holder, free) if time.monotonic() >= self._look_at else []
        claimed = claimed or self._tell(holder, "claim", body, "jobs", timeout_s=self._wait_s + 30.0)
        jobs: list[Job] = []
        with self._changed:
            if self._id == holder:  # Start nothing if the lease was lost in between.
                jobs = [self._job(holder, job) for job in claimed]
                self._running.update((job.run, job) for job in jobs)
        for job in jobs:
            threading.Thread(target=self._run_one, args=(job,), daemon=True).start()

    def _job(self, holder: int, claimed: dict[str, Any]) -> Job:
        given: dict[str, Any] = {name: claimed.get(name) for name in CLAIMED}
        created_at, nominal_at = claimed.get("created_at", ""), claimed.get("nominal_at")
        return Job(**given, _created_at=created_at, _nominal_at=nominal_at, _worker=self, _holder=holder)

    def _adopt(self, holder: int, free: int) -> list[dict[str, Any]]:
        """Returns jobs that the server has assigned to this worker but the worker does not know: the response to their claim was lost."""
        with self._changed:  # Before the request, so that a run that ends in between is known.
            known = set(self._running)
        held = part(self._client.ask("GET", f"/v1/workers/{holder}/jobs"), "jobs", list)
        unknown = [job for job in held if job["run"] not in known]
        self._look_at = 0.0 if len(unknown) > free else time.monotonic() + LOOK_EVERY_S
        return unknown[:free]

    def _run_one(self, job: Job) -> None:
        deadline = threading.Timer(min((job.timeout_ms or 0) / 1000, threading.TIMEOUT_MAX), self._time_out, (job,))
        deadline.daemon = True
        try:
            end, error = self._end_of(job, deadline)
            _log_failure(job, self._end(job, end), error)
        finally:
            deadline.cancel()
            with self._changed:
                job._returned = True
                self._let_go(job)

    def _time_out(self, job: Job) -> None:
        """Ends a job that has exceeded its time limit. Its thread cannot be stopped and keeps its place until the handler returns; the
        result of the handler is ignored."""
        late = _failure("timeout", f"the attempt took longer than {job.timeout_ms} ms")
        end = {"outcome": STOPPED[job._reason]} if job._reason in STOPPED else late
        # In this order: the handler's reaction to the stop request must not be reported first.
        decided = self._end(job, end)
        job._ask_to_stop("timeout")
        _log_failure(job, decided, None)

    def _end(self, job: Job, end: dict[str, Any]) -> dict[str, Any] | None:
        """Decides the end of a run. Returns it, as it is reported; `None` if another end was decided before."""
        end, encoded = _encoded(job, end)
        with self._changed:
            if job._ended:
                return None
            job._ended = True
            if job._reason == "lost":
                job._told = True
            else:
                self._ends.append((job, encoded))
            self._changed.notify_all()
        return end

    def _let_go(self, job: Job) -> None:
        """Frees the place of a job that has ended, for a caller that holds the lock."""
        if job._returned and job._told:
            self._running.pop(job.run, None)
            self._apart.discard(job.run)
        elif job._returned and job._held:
            self._apart.add(job.run)
        self._changed.notify_all()

    def _end_of(self, job: Job, deadline: threading.Timer) -> tuple[dict[str, Any], BaseException | None]:
        """Runs the handler. Returns the end of the run, and the error that the handler raised."""
        try:
            if job.timeout_ms is not None:
                deadline.start()
            return {"outcome": "succeeded", "result": self._handlers[job.kind](job)}, None
        except BaseException as error:  # noqa: BLE001: any error of a handler, including `sys.exit`, ends its attempt
            return _end_after(error, job), error

    def _tell_ends(self, over: threading.Event) -> None:
        """Reports ends in batches."""
        while not over.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._ends, timeout=0.1)
                ends = _next_batch(self._ends)
            if ends:
                self._report(ends)

    def _tell_held(self, over: threading.Event) -> None:
        """Reports held ends again, until their transactions have ended. A separate thread does this, so that they do not delay other ends."""
        pause_s = HELD_PAUSE_MIN_S
        while not over.wait(pause_s):
            with self._changed:
                held, self._held_ends = self._held_ends, deque()
            pause_s = min(pause_s * 2, HELD_PAUSE_MAX_S) if held else HELD_PAUSE_MIN_S
            while held:
                self._report(_next_batch(held))

    def _report(self, ends: list[End]) -> None:
        """Reports ends, and keeps those that an open transaction holds."""
        held = self._tell_until_heard(ends)
        waiting = {job.run for job, _ in held}
        with self._changed:
            self._held_ends.extend(held)
            for job, _ in ends:
                job._held = job.run in waiting
                job._told = not job._held
                self._let_go(job)

    def _tell_until_heard(self, ends: list[End]) -> list[End]:
        """Reports ends for up to the duration of a lease. After that the worker stops renewing its lease, so that it expires and the jobs are
        retried. An end that the server rejects is reported as a failure. Returns the ends that an open transaction holds."""
        give_up_at, failures = time.monotonic() + self._lease_s, 0
        while True:
            try_s = max(min(self._lease_s / 3, give_up_at - time.monotonic()), 0.001)
            try:
                body = b'{"runs":[' + b",".join(end for _, end in ends) + b"]}"
                answers = self._tell(ends[0][0]._holder, "finish", body, "runs", timeout_s=try_s)
                if len(answers) == len(ends):
                    break
                raise Unreachable(f"the answer is not from Milepost: it answers {len(answers)} of {len(ends)} ends")
            except Exception as error:  # noqa: BLE001: the ends must be reported after any error
                left, why = give_up_at - time.monotonic(), error
            if isinstance(why, Problem) and why.status in (400, 413, 422):
                if (half := len(ends) // 2) > 0:
                    return self._tell_until_heard(ends[:half]) + self._tell_until_heard(ends[half:])
                [(job, _)], rejected = ends, _failure(NOT_TAKEN, why)
                before, ends = ends, [(job, _encoded(job, rejected)[1])]
                if ends != before:  # Otherwise it is logged already.
                    _log_failure(job, rejected, None)
            if left <= 0 or all(job._holder != self._id for job, _ in ends):
                log.error("the ends of %d runs could not be reported: %r", len(ends), why)
                for job, _ in ends:
                    self._lose(job._holder, "ends of runs could not be reported")
                return []
            log.warning("%r; reporting the ends of runs again", why)
            time.sleep(min(pause_after(why, failures), left))
            failures += 1
        for (job, _), said in zip(ends, answers):
            if said == "fenced":
                log.warning("job %s (%s): the end of attempt %s was ignored: %s", job.id, job.kind, job.attempt, self._why_ignored(job))
        return [end for end, said in zip(ends, answers) if said == "held"]

    def _why_ignored(self, job: Job) -> str:
        if job._reason in STOPPED:
            return f"the job was {STOPPED[job._reason]}"
        if job._holder != self._id:
            return "this worker had lost its lease, and the job was taken over"
        return "the job was taken over, or an operator or another program had ended it"

    def _heartbeats(self, over: threading.Event) -> None:
        pause_s = 0.0
        while not over.wait(pause_s):
            pause_s = self._lease_s / 15 if (holder := self._id) is None else self._beat(holder)

    def _beat(self, holder: int) -> float:
        """Renews the lease. Returns how long to wait before the next heartbeat."""
        asked_at, third = time.monotonic(), self._lease_s / 3
        try:
            left = max(self._held_until - asked_at, 0.001)
            told = self._tell(holder, "heartbeat", {}, "stops", timeout_s=min(third, left))
            stops = [(f"{stop['job']}.{stop['token']}.", stop["verb"]) for stop in told]
        except Exception as error:  # noqa: BLE001: the lease must be renewed after any error
            log.warning("%r; the lease could not be renewed", error)
            if getattr(error, "code", "") == "worker_lost" or time.monotonic() >= self._held_until:
                self._lose(holder, str(error))
            return min(max(pause_after(error, 0), self._lease_s / 15), third)
        self._held_until = asked_at + self._lease_s
        with self._changed:
            for job in self._running.values():
                for run, verb in stops:
                    if job.run.startswith(run):
                        job._ask_to_stop(verb)
        return third


def _end_after(error: BaseException, job: Job) -> dict[str, Any]:
    """Returns the end of a run whose handler raised an error. Each run gets an end, also after an error that cannot be described."""
    with contextlib.suppress(BaseException):  # For example, a subclass that has not called `__init__`.
        if isinstance(error, Snooze):
            return {"outcome": "snoozed", "delay_ms": error.delay_ms, "message": _text(error.why)}
        if isinstance(error, Cancelled):
            return {"outcome": STOPPED.get(job._reason, "canceled")}
        if isinstance(error, Failed):
            return {**_failure(error.code, error), "retryable": bool(error.retryable), **error.delay}
    try:
        return _failure(type(error).__name__, traceback.format_exc(limit=-5)[-2000:])
    except BaseException:  # noqa: BLE001
        return _failure("failed", "the error that the handler raised cannot be described")


def _failure(code: Any, message: Any) -> dict[str, Any]:
    return {"outcome": "failed", "error_code": _text(code, 200) or "failed", "message": _text(message)}


def _log_failure(job: Job, end: dict[str, Any] | None, error: BaseException | None) -> None:
    """Logs the end of a run if it is a failure. `error`: what the handler raised. The log contains the traceback of an error that the handler
    did not raise as `Failed`; that of a `Failed` only at level DEBUG."""
    if end is None or end["outcome"] != "failed":
        return
    if job._reason == "lost":
        then = "this is not reported, because the worker has lost the job"
    elif job._reason in STOPPED:
        then = "no attempt follows, because a stop was requested"
    elif job.attempt >= job.max_attempts or not end.get("retryable", True):
        then = "no attempt follows"
    else:
        then = "another attempt follows"
    is_expected = error is None or isinstance(error, Failed)
    why = f"{end['error_code']}: {end['message']}" if is_expected else _described(error)
    shown = None if is_expected and not log.isEnabledFor(logging.DEBUG) else error
    words = "job %s (%s): attempt %s of %s failed; %s: %s"
    log.warning(words, job.id, job.kind, job.attempt, job.max_attempts, then, _text(why, LOGGED_MAX), exc_info=shown)


def _described(error: BaseException | None) -> str:
    try:
        return "".join(traceback.format_exception_only(error)).strip()
    except BaseException:  # noqa: BLE001: for example, an error whose attributes cannot be read
        return type(error).__name__


def _encoded(job: Job, end: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Returns the end of a run, and its JSON. A result that is not JSON fails the run."""
    try:
        return end, _said(job, end)
    except BaseException as error:  # noqa: BLE001: the result can be an object of any class
        failure = _failure(NOT_TAKEN, f"the result is not JSON: {_described(error)[-2000:]}")
        return failure, _said(job, failure)


def _said(job: Job, end: dict[str, Any]) -> bytes:
    backoff = job._worker._backoffs.get(job.kind) if end["outcome"] == "failed" else None
    return json.dumps({"run": job.run, **end, **({"backoff": backoff} if backoff else {})}, allow_nan=False).encode()


def _next_batch(ends: deque[End]) -> list[End]:
    """Removes and returns the ends of the next request. They belong to one registration of the worker, because the request names it."""
    batch: list[End] = []
    size = 0
    while ends and len(batch) < ENDS_MAX:
        job, encoded = ends[0]
        size += len(encoded) + 1
        if batch and (size > ENDS_BYTES_MAX or job._holder != batch[0][0]._holder):
            break
        batch.append(ends.popleft())
    return batch


def _whole_ms(seconds: float) -> int:
    """Returns a delay in whole milliseconds. The server reduces long delays to a hundred years; longer ones than this are not integers there."""
    return min(max(int(float(seconds) * 1000), 0), 2**63)


def _text(words: Any, chars_max: int = 10_000) -> str:
    """Returns text that the server accepts, of at most as many characters as it keeps. Halves of surrogate pairs, which file names can
    contain, are replaced."""
    return ("" if words is None else str(words))[:chars_max].encode("utf-8", "replace").decode()
