"""The worker loop: claims jobs, runs handlers in threads, sends heartbeats, tells how runs ended."""

from __future__ import annotations

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

from .client import Client, Problem, Unreachable

log = logging.getLogger("milepost")


class Snooze(Exception):
    """Raised by a handler: the job is given back for a while; the attempt does not count."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(why)
        self.delay_ms, self.why = int(seconds * 1000), why


class Failed(Exception):
    """Raised by a handler: the attempt failed under this code. Any other exception fails it under its own name."""

    def __init__(self, message: str, code: str = "failed", retryable: bool = True, delay_s: float | None = None) -> None:
        super().__init__(message)
        self.code, self.retryable, self.delay_s = code, retryable, delay_s


class Cancelled(Exception):
    """Raised by `Job.check`: somebody asked the job to stop, or it is not this worker's any more."""


@dataclass
class Job:
    """A job that runs. `payload` is its input, `checkpoint` what an earlier attempt left, `traceparent` the span that it follows from."""

    id: str
    kind: str
    payload: Any
    checkpoint: Any
    attempt: int
    max_attempts: int
    run: str
    traceparent: str | None
    _worker: Worker = field(repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _verb: str = "cancel"

    @property
    def stop_requested(self) -> bool:
        """Whether the job is to stop. Handlers that take long look, or call `check`."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raises `Cancelled` when the job is to stop."""
        if self._stop.is_set():
            raise Cancelled(self._verb)

    def report(self, done: int | None = None, total: int | None = None, message: str | None = None, checkpoint: Any = None) -> None:
        """Tells how far it is, and where the next attempt can go on from. Raises `Cancelled` when the job has moved on."""
        said: dict[str, Any] = {"run": self.run}
        if done is not None:
            said["progress"] = {"done": done, "total": total, "message": message}
        if checkpoint is not None:
            said["checkpoint"] = checkpoint
        if not self._worker.tell("report", {"runs": [said]})["accepted"][0]:
            self._stop.set()
            self.check()


Handler = Callable[[Job], Any]


class Worker:
    """Runs jobs of the kinds in `handlers`, at most `concurrency` at once, until `stop` is called. `wait_s`: how long a claim
    waits for jobs, and so how long a worker without any takes to stop."""

    def __init__(
        self,
        client: Client,
        handlers: Mapping[str, Handler],
        *,
        queues: Sequence[str] = ("default",),
        concurrency: int = 4,
        lease_s: float = 15.0,
        wait_s: float = 5.0,
        name: str | None = None,
    ) -> None:
        self._client, self._handlers, self._queues = client, dict(handlers), list(queues)
        self._concurrency, self._lease_s, self._wait_ms = concurrency, lease_s, int(wait_s * 1000)
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._id: int | None = None
        self._held_until = 0.0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._registering = threading.Lock()
        self._running: dict[str, Job] = {}
        self._ends: queue.Queue[dict[str, Any]] = queue.Queue()
        self._free = threading.Semaphore(concurrency)

    def stop(self) -> None:
        """Takes no further jobs; `run` returns when those that run have ended."""
        self._stop.set()

    def run(self) -> None:
        """Runs jobs until `stop` is called."""
        self._register()
        over = threading.Event()
        beside = [threading.Thread(target=loop, args=(over,), daemon=True) for loop in (self._heartbeats, self._tell_ends)]
        for thread in beside:
            thread.start()
        try:
            while not self._stop.is_set():
                self._claim()
            for _ in range(self._concurrency):
                self._free.acquire()
            self._ends.join()
        finally:
            over.set()
            for thread in beside:
                thread.join()
        self._quietly(lambda: self._client.ask("DELETE", f"/v1/workers/{self._id}", tries=3))

    def tell(self, verb: str, body: Any, tries: int = 4, timeout_s: float | None = None) -> Any:
        """One request of the worker protocol."""
        return self._client.ask("POST", f"/v1/workers/{self._id}/{verb}", body, tries=tries, timeout_s=timeout_s)

    def _register(self) -> None:
        body = {"name": self._name, "queues": self._queues, "kinds": list(self._handlers), "lease_ms": int(self._lease_s * 1000)}
        while not self._stop.is_set():
            try:
                asked_at = time.monotonic()
                self._id = self._client.ask("POST", "/v1/workers", body)["id"]
                self._held_until = asked_at + self._lease_s
                return
            except Unreachable as error:
                log.warning("%s; trying again", error)
                self._stop.wait(1.0)

    def _claim(self) -> None:
        """Takes as many jobs as there are free threads, and waits for some; jobs of a claim whose answer was lost are found, too."""
        if not self._free.acquire(timeout=1.0):
            return
        free = 1
        while free < self._concurrency and self._free.acquire(blocking=False):
            free += 1
        jobs: list[dict[str, Any]] = []
        known_as = self._id
        try:
            body = {"queues": self._queues, "kinds": list(self._handlers), "limit": free, "wait_ms": self._wait_ms}
            jobs = self.tell("claim", body, tries=1)["jobs"]
        except Unreachable as error:
            log.warning("%s; looking for what was claimed", error)
            self._stop.wait(1.0)
            jobs = self._held()[:free]
        except Problem as problem:
            self._after(problem, known_as)
        for job in jobs:
            self._start(job)
        for _ in range(free - len(jobs)):
            self._free.release()

    def _held(self) -> list[dict[str, Any]]:
        """What the store says we hold and we do not know of."""
        try:
            held = self._client.ask("GET", f"/v1/workers/{self._id}/jobs")["jobs"]
        except (Unreachable, Problem):
            return []
        with self._lock:
            return [job for job in held if job["run"] not in self._running]

    def _after(self, problem: Problem, known_as: int | None) -> None:
        if problem.code != "worker_lost":
            log.warning("%s; trying again", problem)
            self._stop.wait(1.0)
            return
        with self._registering:
            if self._id == known_as:
                log.warning("the lease was lost; registering anew")
                self._drop_all()
                self._register()

    def _drop_all(self) -> None:
        """What runs is somebody else's now, or will be."""
        with self._lock:
            for job in self._running.values():
                job._stop.set()

    def _start(self, claimed: dict[str, Any]) -> None:
        job = Job(
            claimed["id"],
            claimed["kind"],
            claimed["payload"],
            claimed.get("checkpoint"),
            claimed["attempt"],
            claimed["max_attempts"],
            claimed["run"],
            claimed.get("traceparent"),
            self,
        )
        with self._lock:
            self._running[job.run] = job
        threading.Thread(target=self._run_one, args=(job,), daemon=True).start()

    def _run_one(self, job: Job) -> None:
        try:
            self._ends.put({"run": job.run, **self._end_of(job)})
        finally:
            self._free.release()

    def _end_of(self, job: Job) -> dict[str, Any]:
        try:
            return {"outcome": "succeeded", "result": self._handlers[job.kind](job)}
        except Snooze as snooze:
            return {"outcome": "snoozed", "delay_ms": snooze.delay_ms, "message": snooze.why}
        except Cancelled:
            return {"outcome": "aborted" if job._verb == "abort" else "canceled"}
        except Failed as failed:
            end = {"outcome": "failed", "error_code": failed.code, "message": str(failed), "retryable": failed.retryable}
            return end if failed.delay_s is None else {**end, "delay_ms": int(failed.delay_s * 1000)}
        except Exception as error:  # noqa: BLE001: whatever a handler does wrong is the end of its attempt
            where = traceback.format_exc(limit=-5)
            return {"outcome": "failed", "error_code": type(error).__name__, "message": where[-2000:]}

    def _tell_ends(self, over: threading.Event) -> None:
        """Tells ends, many at a time, until the server has heard them."""
        while not over.is_set():
            try:
                ends = [self._ends.get(timeout=0.1)]
            except queue.Empty:
                continue
            while len(ends) < 500 and not self._ends.empty():
                ends.append(self._ends.get_nowait())
            self._tell_until_heard(ends)
            with self._lock:
                for end in ends:
                    self._running.pop(end["run"], None)
            for _ in ends:
                self._ends.task_done()

    def _tell_until_heard(self, ends: list[dict[str, Any]]) -> None:
        began = time.monotonic()
        while time.monotonic() - began < self._lease_s:
            try:
                for end, said in zip(ends, self.tell("finish", {"runs": ends})["runs"], strict=True):
                    if said == "fenced":
                        log.warning("run %s had moved on; its end was not taken", end["run"])
                return
            except Unreachable as error:
                log.warning("%s; telling ends again", error)
            except (Problem, TypeError, ValueError) as problem:
                if len(ends) == 1:
                    log.error("the end of run %s is not taken: %s", ends[0]["run"], problem)
                    self._quietly(lambda: self.tell("finish", {"runs": [_as_failure(ends[0], problem)]}))
                    return
                for end in ends:
                    self._tell_until_heard([end])
                return
        log.error("%d ends could not be told within the lease; their jobs are tried again", len(ends))

    def _heartbeats(self, over: threading.Event) -> None:
        while not over.wait(self._lease_s / 3):
            asked_at, known_as = time.monotonic(), self._id
            try:
                stops = self.tell("heartbeat", {}, tries=1, timeout_s=self._lease_s / 3)["stops"]
            except Unreachable as error:
                log.warning("%s; the lease could not be renewed", error)
                if time.monotonic() >= self._held_until:
                    self._drop_all()
                continue
            except Problem as problem:
                self._after(problem, known_as)
                continue
            self._held_until = asked_at + self._lease_s
            for stop in stops:
                self._ask_to_stop(stop)

    def _ask_to_stop(self, stop: Mapping[str, Any]) -> None:
        with self._lock:
            for job in self._running.values():
                if job.run.startswith(f"{stop['job']}.{stop['token']}."):
                    job._verb = stop["verb"]
                    job._stop.set()

    @staticmethod
    def _quietly(ask: Callable[[], Any]) -> None:
        try:
            ask()
        except (Unreachable, Problem) as error:
            log.debug("%s", error)


def _as_failure(end: dict[str, Any], problem: Exception) -> dict[str, Any]:
    """What is told instead of an end that the server cannot take: a result that is no JSON, say."""
    return {"run": end["run"], "outcome": "failed", "error_code": "end_not_taken", "message": str(problem)[:2000]}
