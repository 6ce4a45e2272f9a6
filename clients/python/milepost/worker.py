"""Worker loop: claims jobs, runs handlers in threads, sends heartbeats, reports the ends of runs."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .client import Client, Problem, Unreachable, part, pause_after

log = logging.getLogger("milepost")

LOOK_EVERY_S = 30.0  # Interval between queries for the jobs that the server has assigned to this worker.
NOT_TAKEN = "end_not_taken"  # Error code of a run whose end the server rejects.
STOPPED = {"cancel": "canceled", "abort": "aborted"}  # Outcome of a run by stop request.


class Snooze(Exception):
    """Raised by a handler: releases the job for the given time; the attempt does not count."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(why)
        self.delay_ms, self.why = int(seconds * 1000), why


class Failed(Exception):
    """Raised by a handler: the attempt failed with this error code. For any other exception, the code is the name of its class."""

    def __init__(self, message: str, code: str = "failed", retryable: bool = True, delay_s: float | None = None) -> None:
        super().__init__(message)
        self.code, self.retryable, self.delay_s = code, retryable, delay_s
        self.delay = {} if delay_s is None else {"delay_ms": int(delay_s * 1000)}


class Cancelled(Exception):
    """Raised by `Job.check`: a stop was requested, the time limit was exceeded, or this worker has lost the job."""


@dataclass
class Job:
    """A running job. `payload` is its input, `checkpoint` the last checkpoint of an earlier attempt, `traceparent` its parent span."""

    id: str
    kind: str
    payload: Any
    checkpoint: Any
    attempt: int
    max_attempts: int
    timeout_ms: int | None
    run: str
    traceparent: str | None
    _worker: Worker = field(repr=False)
    _holder: int = field(repr=False)  # The id of the worker that claimed the job.
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _reason: str = ""  # Why it must stop: `cancel`, `abort`, `timeout` or `lost` (its end is not reported).
    _ended: bool = False

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


CLAIMED = ("id", "kind", "payload", "checkpoint", "attempt", "max_attempts", "timeout_ms", "run", "traceparent")
Handler = Callable[[Job], Any]
End = tuple[Job, dict[str, Any]]


class Worker:
    """Runs jobs of the kinds in `handlers`, at most `concurrency` at the same time, until `stop` is called. `wait_s`: how long a
    claim waits for jobs, and therefore how long an idle worker may take to stop."""

    def __init__(
        self, client: Client, handlers: Mapping[str, Handler], *, queues: Sequence[str] = ("default",),
        concurrency: int = 4, lease_s: float = 15.0, wait_s: float = 5.0, name: str | None = None,
    ) -> None:
        self._client, self._handlers = client, dict(handlers)
        self._serves = {"queues": list(queues), "kinds": list(self._handlers)}
        self._concurrency, self._lease_s, self._wait_s = concurrency, lease_s, wait_s
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"
        # Set while the worker holds a lease, and until when the lease certainly lasts.
        self._id: int | None = None
        self._held_until = 0.0
        # When to query the assigned jobs; 0 after a claim whose result is unknown.
        self._look_at = 0.0
        self._stopping = False  # Not an `Event`, because signal handlers call `stop`.
        self._lock = threading.Lock()
        self._running: dict[str, Job] = {}
        self._ends: queue.Queue[End] = queue.Queue()
        self._free = threading.Semaphore(concurrency)

    def stop(self) -> None:
        """Stops claiming jobs; `run` returns when the running jobs have ended. Returns immediately."""
        self._stopping = True

    def run(self) -> None:
        """Runs jobs until `stop` is called, then waits for the running ones. Raises `Problem` if the server rejects the registration."""
        over = threading.Event()
        beside = [threading.Thread(target=loop, args=(over,), daemon=True) for loop in (self._heartbeats, self._tell_ends)]
        for thread in beside:
            thread.start()
        try:
            while not self._stopping:
                self._go_on(self._id)
            for _ in range(self._concurrency):
                self._free.acquire()
            self._ends.join()
        finally:
            over.set()
            for thread in beside:
                thread.join()
        if self._id is not None:
            with contextlib.suppress(Unreachable, Problem):
                self._client.ask("DELETE", f"/v1/workers/{self._id}", tries=3, timeout_s=5.0)

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
        body = {**self._serves, "name": self._name, "lease_ms": int(self._lease_s * 1000)}
        asked_at = time.monotonic()
        holder = part(self._client.ask("POST", "/v1/workers", body), "id", int)
        self._held_until, self._id = asked_at + self._lease_s, holder

    def _lose(self, holder: int, why: str) -> None:
        """Stops the running jobs, because other workers take them over, and reports nothing more about them. `run` registers again."""
        with self._lock:
            if self._id != holder:
                return
            self._id = None
            for job in self._running.values():
                if not job._ended:
                    job._ask_to_stop("lost")
        log.error("the lease is lost: %s; stopping the running jobs, which will be retried", why)

    def _claim(self, holder: int) -> None:
        """Claims up to as many jobs as there are free threads, and waits if there are none."""
        if not self._free.acquire(timeout=1.0):
            return
        free = 1
        while free < self._concurrency and self._free.acquire(blocking=False):
            free += 1
        body = {**self._serves, "limit": free, "wait_ms": int(self._wait_s * 1000)}
        jobs: list[Job] = []
        try:
            claimed: Any = self._adopt(holder, free) if time.monotonic() >= self._look_at else []
            claimed = claimed or self._tell(holder, "claim", body, "jobs", timeout_s=self._wait_s + 30.0)
            with self._lock:
                if self._id == holder:  # Start nothing if the lease was lost in between.
                    jobs = [Job(**{name: job.get(name) for name in CLAIMED}, _worker=self, _holder=holder) for job in claimed]
                    self._running.update((job.run, job) for job in jobs)
            for job in jobs:
                threading.Thread(target=self._run_one, args=(job,), daemon=True).start()
        finally:
            for _ in range(free - len(jobs)):
                self._free.release()

    def _adopt(self, holder: int, free: int) -> list[dict[str, Any]]:
        """Returns jobs that the server has assigned to this worker but the worker does not know: the response to their claim was lost."""
        with self._lock:  # Before the request, so that a run that ends in between is known.
            known = set(self._running)
        held = part(self._client.ask("GET", f"/v1/workers/{holder}/jobs"), "jobs", list)
        unknown = [job for job in held if job["run"] not in known]
        self._look_at = 0.0 if len(unknown) > free else time.monotonic() + LOOK_EVERY_S
        return unknown[:free]

    def _run_one(self, job: Job) -> None:
        deadline = threading.Timer(min((job.timeout_ms or 0) / 1000, threading.TIMEOUT_MAX), self._time_out, (job,))
        deadline.daemon = True
        try:
            self._end(job, self._end_of(job, deadline))
        finally:
            deadline.cancel()
            self._free.release()

    def _time_out(self, job: Job) -> None:
        """Ends a job that has exceeded its time limit. Its thread cannot be stopped and stays occupied until the handler returns; the
        result of the handler is ignored."""
        late = _failure("timeout", f"the attempt took longer than {job.timeout_ms} ms")
        end = {"outcome": STOPPED[job._reason]} if job._reason in STOPPED else late
        # In this order: the handler's reaction to the stop request must not be reported first.
        self._end(job, end)
        job._ask_to_stop("timeout")

    def _end(self, job: Job, end: dict[str, Any]) -> None:
        with self._lock:
            if job._ended:
                return
            job._ended = True
            if job._reason == "lost":
                self._running.pop(job.run, None)
                return
        self._ends.put((job, {"run": job.run, **end}))

    def _end_of(self, job: Job, deadline: threading.Timer) -> dict[str, Any]:
        try:
            if job.timeout_ms is not None:
                deadline.start()
            return {"outcome": "succeeded", "result": self._handlers[job.kind](job)}
        except Snooze as snooze:
            return {"outcome": "snoozed", "delay_ms": snooze.delay_ms, "message": _text(snooze.why)}
        except Cancelled:
            return {"outcome": STOPPED.get(job._reason, "canceled")}
        except Failed as failed:
            return {**_failure(failed.code, str(failed)), "retryable": failed.retryable, **failed.delay}
        except BaseException as error:  # noqa: BLE001: any error of a handler, including `sys.exit`, ends its attempt
            return _failure(type(error).__name__, traceback.format_exc(limit=-5)[-2000:])

    def _tell_ends(self, over: threading.Event) -> None:
        """Reports ends in batches and repeats each report until the server answers. Ends that an open transaction holds are reported again
        once a second, apart from the others."""
        held: list[End] = []
        again_at = 0.0
        while not over.is_set():
            if held and time.monotonic() >= again_at:
                held, again_at = self._report(held), time.monotonic() + 1.0
            try:
                ends = [self._ends.get(timeout=0.1)]
            except queue.Empty:
                continue
            while len(ends) < 500 and not self._ends.empty():
                ends.append(self._ends.get_nowait())
            held.extend(self._report(ends))

    def _report(self, ends: list[End]) -> list[End]:
        """Reports ends. Returns those that an open transaction holds."""
        held: list[End] = []
        try:
            held = self._tell_until_heard(ends)
        except Exception as error:  # noqa: BLE001: `run` waits for this thread, which must not end first
            log.exception("the ends of %d runs could not be reported", len(ends))
            for job, _ in ends:
                self._lose(job._holder, f"ends of runs could not be reported: {error!r}")
        over = [job for job, _ in ends if all(job is not other for other, _ in held)]
        with self._lock:
            for job in over:
                self._running.pop(job.run, None)
        for _ in over:
            self._ends.task_done()
        return held

    def _tell_until_heard(self, ends: list[End]) -> list[End]:
        """Reports ends for up to the duration of a lease. After that the worker stops renewing its lease, so that it expires and the jobs are
        retried. An end that the server rejects, for example because the result is not JSON, is reported as a failure. Returns the ends that
        an open transaction holds."""
        give_up_at, failures = time.monotonic() + self._lease_s, 0
        while True:
            try_s = max(min(self._lease_s / 3, give_up_at - time.monotonic()), 0.001)
            try:
                answers = self._tell(ends[0][0]._holder, "finish", {"runs": [end for _, end in ends]}, "runs", timeout_s=try_s)
                if len(answers) == len(ends):
                    break
                raise Unreachable(f"the answer is not from Milepost: it answers {len(answers)} of {len(ends)} ends")
            except (Unreachable, Problem, TypeError, ValueError, RecursionError) as error:
                left, why = give_up_at - time.monotonic(), error
            if getattr(why, "status", 422) in (400, 413, 422) and not isinstance(why, Unreachable):
                if len(ends) > 1:
                    return [held for end in ends for held in self._tell_until_heard([end])]
                ends = [(job, {"run": job.run, **_failure(NOT_TAKEN, str(why)[:2000])}) for job, _ in ends]
            if left <= 0 or all(job._holder != self._id for job, _ in ends):
                log.error("the ends of %d runs could not be reported: %s", len(ends), why)
                for job, _ in ends:
                    self._lose(job._holder, "ends of runs could not be reported")
                return []
            log.warning("%s; reporting the ends of runs again", why)
            time.sleep(min(pause_after(why, failures), left))
            failures += 1
        for (job, _), said in zip(ends, answers):
            if said == "fenced":
                log.warning("the job had left run %s; the end of the run was ignored", job.run)
        return [end for end, said in zip(ends, answers) if said == "held"]

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
        with self._lock:
            for job in self._running.values():
                for run, verb in stops:
                    if job.run.startswith(run):
                        job._ask_to_stop(verb)
        return third


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"outcome": "failed", "error_code": _text(code), "message": _text(message)}


def _text(words: str) -> str:
    """Returns text that the server accepts: halves of surrogate pairs, which file names can contain, are replaced."""
    return words.encode("utf-8", "replace").decode()
