"""Client and worker for asyncio. Requests run in threads, so that the package needs no HTTP library."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from .client import Client, Created, Emitted, NewEvent, NewJob
from .job import Backoff
from .worker import Handles, Worker

P = ParamSpec("P")
R = TypeVar("R")


class AsyncClient:
    """`Client` for asyncio: the same methods, as coroutines. At most `requests_max` requests are in progress at the same time; others wait. The
    server may execute a request whose task is cancelled."""

    def __init__(
        self, url: str = "http://127.0.0.1:7070", token: str | None = None, timeout_s: float = 60.0, requests_max: int = 16,
    ) -> None:
        self.sync = Client(url, token, timeout_s)
        self._threads = ThreadPoolExecutor(requests_max, "milepost")

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Waits for the requests in progress, and closes the idle connections."""
        await asyncio.to_thread(self._threads.shutdown)
        self.sync.close()

    async def create(self, job: NewJob) -> Created:
        """Creates a job, like `Client.create`."""
        return await self._call(Client.create, job)

    async def create_many(self, jobs: Sequence[NewJob]) -> list[Created]:
        """Creates up to 5,000 jobs, all or none, like `Client.create_many`."""
        return await self._call(Client.create_many, jobs)

    async def start_batch(
        self, dag: str, input: Any = None, *, key: str | None = None, nominal_at: str | datetime | None = None,
        nominal_zone: str | None = None,
    ) -> Created:
        """Starts a batch, like `Client.start_batch`."""
        return await self._call(Client.start_batch, dag, input, key=key, nominal_at=nominal_at, nominal_zone=nominal_zone)

    async def signal(self, batch_id: str, name: str, payload: Any = None, *, id: str | None = None, reason: str | None = None) -> str:
        """Sends a signal to a batch, like `Client.signal`."""
        return await self._call(Client.signal, batch_id, name, payload, id=id, reason=reason)

    async def start_bulk(
        self, name: str, parameters: Any = None, *, key: str | None = None, start_at: str | datetime | None = None,
        priority: int | None = None,
    ) -> Created:
        """Starts a run of a bulk job, like `Client.start_bulk`."""
        return await self._call(Client.start_bulk, name, parameters, key=key, start_at=start_at, priority=priority)

    async def emit(self, event: NewEvent) -> Emitted:
        """Emits an event, like `Client.emit`."""
        return await self._call(Client.emit, event)

    async def emit_many(self, events: Sequence[NewEvent]) -> list[Emitted]:
        """Emits up to 1,000 events, all or none, like `Client.emit_many`."""
        return await self._call(Client.emit_many, events)

    async def job(self, job_id: str) -> dict[str, Any]:
        """Returns a job, like `Client.job`."""
        return await self._call(Client.job, job_id)

    async def wait(self, job_id: str, timeout_s: float) -> dict[str, Any]:
        """Returns a job when it has ended, like `Client.wait`. Occupies no thread between its requests."""
        steps = self.sync._wait_steps(job_id, timeout_s)
        while True:
            step = await self._call(lambda _: next(steps))
            if isinstance(step, dict):
                return step
            await asyncio.sleep(step)

    async def jobs(self, **only: str | datetime) -> AsyncIterator[dict[str, Any]]:
        """Yields jobs, like `Client.jobs`."""
        jobs = self.sync.jobs(**only)
        while (job := await self._call(lambda _: next(jobs, None))) is not None:
            yield job

    async def cancel(self, job_id: str, reason: str | None = None, *, grace_ms: int | None = None) -> str:
        """Cancels a job, like `Client.cancel`."""
        return await self._call(Client.cancel, job_id, reason, grace_ms=grace_ms)

    async def operate(self, job_id: str, operation: str, **more: Any) -> str:
        """Performs an operation on a job, like `Client.operate`."""
        return await self._call(lambda client: client.operate(job_id, operation, **more))

    async def ask(
        self, method: str, path: str, body: Any = None, *,
        headers: dict[str, str] | None = None, tries: int = 1, timeout_s: float | None = None,
    ) -> Any:
        """Sends any request, like `Client.ask`."""
        return await self._call(Client.ask, method, path, body, headers=headers, tries=tries, timeout_s=timeout_s)

    async def _call(self, method: Callable[Concatenate[Client, P], R], *given: P.args, **named: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: method(self.sync, *given, **named))


class AsyncWorker:
    """`Worker` for asyncio: async handlers run in the event loop of the caller, the others in threads or child processes. The parameters are those
    of `Worker`."""

    def __init__(
        self, client: AsyncClient, handlers: Mapping[str, Handles], *, queues: Sequence[str] = ("default",),
        concurrency: int = 100, lease_s: float = 15.0, wait_s: float = 5.0, name: str | None = None,
        backoffs: Mapping[str, Backoff] | None = None, processes: bool = False, initializer: Callable[[], object] | None = None,
    ) -> None:
        self._worker = Worker(
            client.sync, handlers, queues=queues, concurrency=concurrency, lease_s=lease_s, wait_s=wait_s, name=name, backoffs=backoffs,
            processes=processes, initializer=initializer,
        )

    def stop(self) -> None:
        """Stops the worker; `run` returns when the running jobs have ended. Returns immediately."""
        self._worker.stop()

    async def run(self) -> None:
        """Runs jobs until `stop` is called or the task is cancelled, then waits for the running ones. Raises `Problem` if the server rejects the
        registration."""
        loop = self._worker._loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "milepost-worker") as thread:
            running = loop.run_in_executor(thread, self._worker.run)
            try:
                await asyncio.shield(running)
            except asyncio.CancelledError:
                self.stop()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
                raise
