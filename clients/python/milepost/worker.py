"""Worker loop: claims jobs, runs handlers in threads, child processes or an event loop, sends heartbeats, reports the ends of runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .client import Client, Problem, Unreachable, part, pause_after
from .ends import NOT_TAKEN, after_error, encoded, failure, log, log_failure
from .handlers import is_async
from .job import STOPPED, Backoff, Job
from .processes import Processes
from .runtime import event_loop, on_signals

LOOK_EVERY_S = 30.0  # Interval between queries for the jobs that the server has assigned to this worker.
CLAIM_MAX = 500  # Maximum number of jobs that the server returns for a claim.
ENDS_MAX, ENDS_BYTES_MAX = 500, 8 << 20  # Limits of a request that reports ends. The server accepts 1,000 ends and 16 MiB.
HELD_MAX = 2_000  # Maximum number of held ends that occupy no places.
HELD_PAUSE_MIN_S, HELD_PAUSE_MAX_S = 0.1, 1.0  # Pauses between reports of held ends.
STOP_PAUSE_S = 0.02  # Interval between checks whether `stop` was called.
LAST_CLAIM_S = 0.1  # How long the server may continue a claim whose connection is closed.

CLAIMED = (
    "id", "kind", "queue", "payload", "checkpoint", "attempt", "max_attempts", "timeout_ms", "group", "batch", "run", "run_token", "traceparent",
)
Handles = Callable[[Job[Any]], Any]
End = tuple[Job[Any], bytes]  # A job, and the end of its run as JSON.


class Worker:
    """Runs jobs of the kinds in `handlers`, at most `concurrency` at the same time, until `stop` is called. Async handlers share an event loop; the
    others run in separate threads, or with `processes` in child processes, which first call `initializer`. `wait_s`: how long a claim waits for
    jobs. `backoffs`: how long jobs of these kinds wait after a failed attempt. The others wait 1 s, then 2 s, 4 s and so on up to an hour."""

    def __init__(
        self, client: Client, handlers: Mapping[str, Handles], *, queues: Sequence[str] = ("default",),
        concurrency: int = 4, lease_s: float = 15.0, wait_s: float = 5.0, name: str | None = None,
        backoffs: Mapping[str, Backoff] | None = None, processes: bool = False, initializer: Callable[[], object] | None = None,
    ) -> None:
        self._client, self._handlers = client, dict(handlers)
        self._serves = {"queues": list(queues), "kinds": list(self._handlers)}
        of_handlers = {kind: getattr(handler, "backoff", None) for kind, handler in self._handlers.items()}
        self._backoffs = {kind: backoff._body() for kind, backoff in {**of_handlers, **(backoffs or {})}.items() if backoff}
        self._concurrency, self._lease_s, self._wait_s = concurrency, lease_s, wait_s
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._processes = Processes(initializer) if processes else None
        self._loop: asyncio.AbstractEventLoop | None = None  # Of async handlers.
        # Set while the worker holds a lease, and until when the lease certainly lasts.
        self._id: int | None = None
        self._held_until = 0.0
        # When to query the assigned jobs; 0 after a claim whose result is unknown.
        self._look_at = 0.0
        self._stopping = False  # Not an `Event`, because signal handlers call `stop`.
        self._error: BaseException | None = None  # Why claims have ended.
        self._changed = threading.Condition()  # Guards the following fields, and is notified when they change.
        self._running: dict[str, Job[Any]] = {}  # Jobs whose handler has not returned or whose end is not reported.
        self._ends: deque[End] = deque()
        self._held_ends: deque[End] = deque()  # Ends that open transactions of other programs hold.
        self._apart: set[str] = set()  # Runs whose handler has returned and whose end is held.

    def stop(self) -> None:
        """Stops the worker; `run` returns when the running jobs have ended. Returns immediately. Signal handlers may call it."""
        self._stopping = True

    def run(self, handle_signals: bool = False) -> None:
        """Runs jobs until `stop` is called, then waits for the running ones. Raises `Problem` if the server rejects the registration.
        `handle_signals`: SIGINT and SIGTERM call `stop`; only in the main thread."""
        with contextlib.ExitStack() as stack:
            if handle_signals:
                stack.enter_context(on_signals(self.stop))
            if self._processes is not None:
                stack.callback(self._processes.close)
            if self._loop is None and any(map(is_async, self._handlers.values())):
                self._loop = stack.enter_context(event_loop())
            self._run()
        if self._error is not None:
            raise self._error
        log.info("worker %s has stopped", self._name)

    def _run(self) -> None:
        over = threading.Event()
        beside = [threading.Thread(target=loop, args=(over,), daemon=True) for loop in (self._heartbeats, self._tell_ends, self._tell_held)]
        # A claim waits for its answer in its thread, so that `stop` does not have to wait for it.
        claims = threading.Thread(target=self._claims, daemon=True)
        for thread in (*beside, claims):
            thread.start()
        try:
            while claims.is_alive() and not self._stopping:
                time.sleep(STOP_PAUSE_S)
            with self._changed:
                self._changed.wait_for(lambda: not self._running)
        finally:
            self._stopping = True
            over.set()
            for thread in beside:
                thread.join()
        if self._id is not None:
            self._leave(self._id, claims)

    def _claims(self) -> None:
        try:
            while not self._stopping:
                self._go_on(self._id)
        except BaseException as error:  # noqa: BLE001: `run` raises it
            self._error = error

    def _leave(self, holder: int, claims: threading.Thread) -> None:
        """Ends the pending claim, hands back what it has claimed, and deregisters the worker. In this order, because jobs of a deregistered
        worker count as lost."""
        self._client._interrupt(claims)
        time.sleep(LAST_CLAIM_S)
        with contextlib.suppress(Unreachable, Problem):
            self._hand_back(holder, part(self._client.ask("GET", f"/v1/workers/{holder}/jobs", tries=3, timeout_s=5.0), "jobs", list))
            self._client.ask("DELETE", f"/v1/workers/{holder}", tries=3, timeout_s=5.0)
        claims.join(LAST_CLAIM_S)

    def _hand_back(self, holder: int, claimed: list[dict[str, Any]]) -> None:
        """Returns claimed jobs to their queue. Their attempts do not count."""
        back = {"outcome": "snoozed", "delay_ms": 0, "message": "the worker stops"}
        if claimed:
            with contextlib.suppress(Unreachable, Problem):  # Otherwise they are retried after the lease.
                self._tell(holder, "finish", {"runs": [{"run": job["run"], **back} for job in claimed]}, "runs", 3, 5.0)

    def _tell(self, holder: int, verb: str, body: Any, answers: str, tries: int = 1, timeout_s: float | None = None) -> Any:
        """Sends a request for a worker and returns the list `answers` of the response."""
        answer = self._client.ask("POST", f"/v1/workers/{holder}/{verb}", body, tries=tries, timeout_s=timeout_s)
        return part(answer, answers, list)

    def _go_on(self, holder: int | None) -> None:
        """Registers the worker, or claims jobs if it is registered. Waits after an error."""
        try:
            self._register() if holder is None else self._claim(holder)
        except (Unreachable, Problem) as error:
            if self._stopping:
                return None
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
        jobs: list[Job[Any]] = []
        with self._changed:
            if starts := self._id == holder and not self._stopping:  # Start nothing if the lease was lost in between.
                jobs = [self._job(holder, job) for job in claimed]
                self._running.update((job.run, job) for job in jobs)
        if not starts:
            self._hand_back(holder, claimed)
        for job in jobs:
            if self._loop is not None and is_async(self._handlers[job.kind]):
                asyncio.run_coroutine_threadsafe(self._run_async(job), self._loop)
            else:
                threading.Thread(target=self._run_one, args=(job,), daemon=True).start()

    def _job(self, holder: int, claimed: dict[str, Any]) -> Job[Any]:
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

    @contextlib.contextmanager
    def _place(self, job: Job[Any]) -> Iterator[None]:
        """Enforces the time limit of a job, and lets its place go when its handler has returned."""
        deadline = threading.Timer(min((job.timeout_ms or 0) / 1000, threading.TIMEOUT_MAX), self._time_out, (job,))
        deadline.daemon = True
        if job.timeout_ms is not None:
            deadline.start()
        try:
            yield
        finally:
            deadline.cancel()
            with self._changed:
                job._returned = True
                self._let_go(job)

    def _run_one(self, job: Job[Any]) -> None:
        """Runs the handler of a job in this thread, or in a child process."""
        with self._place(job):
            error: BaseException | None = None
            try:
                handler = self._handlers[job.kind]
                end = self._processes.run(handler, job) if self._processes else {"outcome": "succeeded", "result": handler(job)}
            except BaseException as raised:  # noqa: BLE001: any error of a handler, including `sys.exit`, ends its attempt
                end, error = after_error(raised, job), raised
            log_failure(job, self._end(job, end), error)

    async def _run_async(self, job: Job[Any]) -> None:
        """Runs an async handler in the event loop. A request to stop cancels its task."""

        async def handle() -> tuple[dict[str, Any], BaseException | None]:
            try:
                return {"outcome": "succeeded", "result": await self._handlers[job.kind](job)}, None
            except BaseException as raised:  # noqa: BLE001: `SystemExit` would end the loop
                return after_error(raised, job), raised

        with self._place(job):
            loop, task = asyncio.get_running_loop(), asyncio.create_task(handle())
            job._interrupt = lambda: loop.call_soon_threadsafe(task.cancel)
            if job.stop_requested:
                task.cancel()
            try:
                end, error = await task
            except asyncio.CancelledError as raised:  # Before its first step.
                end, error = after_error(raised, job), raised
            job._interrupt = None
            log_failure(job, self._end(job, end), error)

    def _time_out(self, job: Job[Any]) -> None:
        """Ends a job that has exceeded its time limit. Its thread cannot be stopped and keeps its place until the handler returns; the
        result of the handler is ignored."""
        late = failure("timeout", f"the attempt took longer than {job.timeout_ms} ms")
        end = {"outcome": STOPPED[job._reason]} if job._reason in STOPPED else late
        # In this order: the handler's reaction to the stop request must not be reported first.
        decided = self._end(job, end)
        job._ask_to_stop("timeout")
        log_failure(job, decided, None)

    def _end(self, job: Job[Any], end: dict[str, Any]) -> dict[str, Any] | None:
        """Decides the end of a run. Returns it, as it is reported; `None` if another end was decided before."""
        end, said = encoded(job.run, end, self._backoffs.get(job.kind))
        with self._changed:
            if job._ended:
                return None
            job._ended = True
            if job._reason == "lost":
                job._told = True
            else:
                self._ends.append((job, said))
            self._changed.notify_all()
        return end

    def _let_go(self, job: Job[Any]) -> None:
        """Frees the place of a job that has ended, for a caller that holds the lock."""
        if job._returned and job._told:
            self._running.pop(job.run, None)
            self._apart.discard(job.run)
        elif job._returned and job._held:
            self._apart.add(job.run)
        self._changed.notify_all()

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
                [(job, _)], rejected = ends, failure(NOT_TAKEN, why)
                before, ends = ends, [(job, encoded(job.run, rejected, self._backoffs.get(job.kind))[1])]
                if ends != before:  # Otherwise it is logged already.
                    log_failure(job, rejected, None)
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

    def _why_ignored(self, job: Job[Any]) -> str:
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
