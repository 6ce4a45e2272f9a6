"""Handlers by kind, registered with a decorator."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, TypedDict, Unpack

from .client import NewJob
from .job import Backoff, Failed, Job, T
from .payloads import convert


class Options(TypedDict, total=False):
    """Settings of a job, as in `NewJob`."""

    queue: str | None
    key: str | None
    group: str | None
    priority: int | None
    max_attempts: int | None
    timeout_ms: int | None
    delay_ms: int | None
    start_at: str | datetime | None


class Handler(Generic[T]):
    """A function that runs the jobs of a kind. Call it with a `Job`, as in a test, or pass it to a worker in `Handlers`."""

    def __init__(self, kind: str, function: Callable[[Job[T]], Any], backoff: Backoff | None, defaults: Options) -> None:
        self.kind, self.function, self.backoff, self.defaults = kind, function, backoff, defaults
        self.payload_type = _payload_type(function)
        self.__doc__, self.__module__, self.__qualname__ = function.__doc__, function.__module__, function.__qualname__

    def __call__(self, job: Job[Any]) -> Any:
        """Runs a job. Its payload is converted to the type in the function's annotation `Job[…]`; if it does not fit, the job fails with the
        code `payload`, and no attempt follows."""
        try:
            job.payload = convert(self.payload_type, job.payload)
        except ValueError as error:
            raise Failed(f"the payload does not fit the handler of {self.kind}: {error}", "payload", retryable=False) from error
        return self.function(job)

    def job(self, payload: T | None = None, **options: Unpack[Options]) -> NewJob:
        """Returns a new job of this kind, to be created by a client or `enqueue`. `options` replace the defaults of the decorator."""
        settings: dict[str, Any] = {**self.defaults, **options}
        return NewJob(self.kind, payload, **settings)

    def __reduce__(self) -> str:
        """Pickles the handler as the name of a variable of its module, for the child processes of a worker."""
        return self.__qualname__


class Handlers(dict[str, Handler[Any]]):
    """Handlers by kind. Pass it to `Worker`."""

    def handler(
        self, kind: str, *, backoff: Backoff | None = None, **defaults: Unpack[Options],
    ) -> Callable[[Callable[[Job[T]], Any]], Handler[T]]:
        """Registers a function, also an `async` one, as the handler of a kind. `backoff`: how long jobs wait after a failed attempt. `defaults`:
        settings of jobs that `Handler.job` makes. Raises `ValueError` if the kind has a handler."""

        def register(function: Callable[[Job[T]], Any]) -> Handler[T]:
            if kind in self:
                raise ValueError(f"the kind {kind!r} has a handler: {self[kind].__module__}.{self[kind].__qualname__}")
            self[kind] = handler = self.make(kind, function, backoff, defaults)
            return handler

        return register

    def make(self, kind: str, function: Callable[[Job[T]], Any], backoff: Backoff | None, defaults: Options) -> Handler[T]:
        """Returns the handler of a function. Subclasses override it to run code around each job."""
        return Handler(kind, function, backoff, defaults)


def is_async(handler: Callable[[Job[Any]], Any]) -> bool:
    """Returns whether a handler returns a coroutine."""
    return inspect.iscoroutinefunction(getattr(handler, "function", handler))


def _payload_type(function: Callable[..., Any]) -> Any:
    """Returns the type `P` of a function whose first parameter is annotated with `Job[P]`, and `Any` without an annotation."""
    names = list(inspect.signature(function).parameters)
    hint = typing.get_type_hints(function).get(names[0]) if names else None
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Job else Any
