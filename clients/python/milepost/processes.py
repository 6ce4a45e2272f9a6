"""Child processes that run handlers: one job at a time in each."""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from multiprocessing.connection import Connection
from typing import Any

from . import ends
from .job import Cancelled, Failed, Job

KILL_AFTER_S = 10.0  # How long a handler may continue after a request to stop; then its process is killed.
LOOK_EVERY_S = 0.05  # Interval between checks whether a running job must stop.


class Processes:
    """Child processes, started when they are needed. `initializer`: a function of a module that each calls first."""

    def __init__(self, initializer: Callable[[], object] | None) -> None:
        self._initializer, self._context = initializer, multiprocessing.get_context("spawn")
        self._idle: list[_Child] = []
        self._lock = threading.Lock()

    def run(self, handler: Callable[[Job[Any]], Any], job: Job[Any]) -> dict[str, Any]:
        """Runs a handler in a child process, and returns the end of the run. Raises `Failed` with the code `process_died` if the process ended
        before the handler, and `Cancelled` if it was killed because the handler did not stop."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
        child = child or _Child(self._context, self._initializer)
        try:
            end = child.run(handler, job)
        except BaseException:
            child.kill()
            raise
        with self._lock:
            self._idle.append(child)
        return end

    def close(self) -> None:
        """Ends the idle processes."""
        with self._lock:
            while self._idle:
                self._idle.pop().kill()


class _Child:
    def __init__(self, context: multiprocessing.context.SpawnContext, initializer: Callable[[], object] | None) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, initializer), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, handler: Callable[[Job[Any]], Any], job: Job[Any]) -> dict[str, Any]:
        sent = {field.name: getattr(job, field.name) for field in fields(job) if field.init and not field.name.startswith("_")}
        self._pipe.send(("run", (handler, {**sent, "_created_at": job._created_at, "_nominal_at": job._nominal_at})))
        kill_at = float("inf")
        while True:
            if job.stop_requested and kill_at == float("inf"):
                kill_at = time.monotonic() + KILL_AFTER_S
                self._pipe.send(("stop", job._reason))
            if time.monotonic() >= kill_at:
                raise Cancelled(job._reason)
            try:
                # A process that the handler forked keeps the pipe open.
                if not self._pipe.poll(LOOK_EVERY_S):
                    if self._process.is_alive():
                        continue
                    if not self._pipe.poll():
                        raise EOFError
                what, value = self._pipe.recv()
            except (EOFError, OSError):
                self._process.join(1.0)
                words = f"the process of the handler ended with the status {self._process.exitcode}"
                raise Failed(words, code="process_died") from None
            if what == "end":
                return {name: part for name, part in json.loads(value).items() if name != "run"}
            self._pipe.send(("told", self._told(job, value)))

    def _told(self, job: Job[Any], said: Any) -> Any:
        """Sends a report of the child's job. Returns the answer, or the error."""
        try:
            return job._worker._tell(job._holder, "report", said, "accepted", 4)
        except Exception as error:  # noqa: BLE001: raised in the child
            return error

    def kill(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


class _Parent:
    """The child's end of the pipe. Takes the place of the worker in a child's job."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.runs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._job: Job[Any] | None = None

    def listen(self) -> None:
        """Receives messages until the parent has ended; then ends this process."""
        while True:
            try:
                what, value = self._pipe.recv()
            except (EOFError, OSError):
                os._exit(1)
            except BaseException as error:  # noqa: BLE001: for example, a module of a handler that cannot be imported
                self.runs.put(error)
                continue
            if what == "run":
                handler, sent = value
                self._job = Job(**sent, _worker=self, _holder=0)
                self.runs.put((handler, self._job))
            elif what == "told":
                self._answers.put(value)
            elif self._job is not None:
                self._job._ask_to_stop(value)

    def _tell(self, holder: int, verb: str, body: Any, answers: str, tries: int = 1, timeout_s: float | None = None) -> Any:
        self._pipe.send(("report", body))
        answer = self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self, end: dict[str, Any]) -> None:
        self._pipe.send(("end", ends.encoded("", end, None)[1]))


def _serve(pipe: Connection, initializer: Callable[[], object] | None) -> None:
    """Runs jobs in a child process."""
    # Ctrl+C reaches all processes of a terminal, and SIGTERM all those of a service; the parent decides. Not SIG_IGN, which programs that a handler
    # starts would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    if initializer is not None:
        initializer()
    parent = _Parent(pipe)
    threading.Thread(target=parent.listen, daemon=True).start()
    while True:
        run = parent.runs.get()
        if isinstance(run, BaseException):
            parent.end(ends.failure(type(run).__name__, f"the handler cannot be loaded in a child process: {run}"))
            continue
        handler, job = run
        try:
            end = {"outcome": "succeeded", "result": handler(job)}
        except BaseException as error:  # noqa: BLE001: any error of a handler, including `sys.exit`, ends its attempt
            end = ends.after_error(error, job)
        parent.end(end)
