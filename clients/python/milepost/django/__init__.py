"""Milepost in Django: the SQL functions on the current database connection, a registry of handlers, and the worker behind `manage.py milepost_worker`.

Add `"milepost.django"` to `INSTALLED_APPS`, and handlers to a module `milepost_jobs.py` of each app. The functions join the transaction of the
connection, so that `transaction.on_commit` is not needed:

    with transaction.atomic():
        order.save()
        milepost.django.enqueue(mail.job({"to": order.email}, key=f"order-{order.pk}"))
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, fields
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connections

from .. import sql
from ..client import Client
from ..errors import translated
from ..handlers import Handler, Handlers, is_async
from ..job import Job
from ..worker import Worker

P = ParamSpec("P")
R = TypeVar("R")

handlers = Handlers()
handler = handlers.handler


@dataclass(frozen=True)
class Settings:
    """The members of the setting `MILEPOST`, here in lower case. `url`: the address of `milepost serve`. `token`: of `client`, which creates jobs
    over HTTP. `worker_token`: of the worker. `database`: the alias of the database with Milepost's tables. The others are parameters of `Worker`."""

    url: str = "http://127.0.0.1:7070"
    token: str | None = None
    worker_token: str | None = None
    database: str = "default"
    queues: tuple[str, ...] = ("default",)
    concurrency: int = 4
    processes: bool = False
    lease_s: float = 15.0

    @classmethod
    def read(cls) -> Settings:
        """Returns the settings of the project. Raises `ImproperlyConfigured` if one is unknown."""
        given = getattr(settings, "MILEPOST", {})
        known = {field.name.upper(): field.name for field in fields(cls)}
        if unknown := sorted(set(given) - set(known)):
            raise ImproperlyConfigured(f"MILEPOST has the unknown setting {unknown[0]!r}; known ones: {', '.join(known)}")
        return cls(**{known[name]: value for name, value in given.items()})


def run(call: sql.Call[R], using: str | None = None) -> R:
    """Runs a call of `milepost.sql` on the connection of a database alias, by default that of the setting `DATABASE`."""
    connection = connections[using or Settings.read().database]
    if connection.vendor != "postgresql":
        words = f"the SQL functions need PostgreSQL, and the database {connection.alias!r} is {connection.vendor}"
        raise ImproperlyConfigured(f"{words}; create jobs with milepost.django.client() there, after the commit")
    with translated(), connection.cursor() as cursor:
        cursor.execute(call.statement("%({})s"), call.parameters)
        rows = cursor.fetchall()
    return call.read(rows)


def _function(make: Callable[P, sql.Call[R]]) -> Callable[P, R]:
    """Returns a function that makes a call and runs it."""

    @functools.wraps(make)
    def made(*given: P.args, **named: P.kwargs) -> R:
        return run(make(*given, **named))

    return made


enqueue = _function(sql.enqueue)
enqueue_many = _function(sql.enqueue_many)
cancel = _function(sql.cancel)
emit = _function(sql.emit)
emit_many = _function(sql.emit_many)
start_batch = _function(sql.start_batch)
signal = _function(sql.signal)
start_bulk = _function(sql.start_bulk)
once = _function(sql.once)
receive = _function(sql.receive)
next_parked = _function(sql.next_parked)
complete = _function(sql.complete)


@functools.cache
def client() -> Client:
    """Returns the client of the server in the settings, for calls over HTTP, such as `client().wait(id, timeout_s=60)`."""
    given = Settings.read()
    return Client(given.url, given.token)


def run_worker(*, handle_signals: bool = True, **options: Any) -> None:
    """Runs a worker of all registered handlers, until SIGINT or SIGTERM if `handle_signals`. `options` replace settings: `url`, `queues`,
    `concurrency`, `processes`, `lease_s`. Raises `Problem` if the server rejects the worker."""
    given = {**vars(Settings.read()), **{name: value for name, value in options.items() if value is not None}}
    names = ("queues", "concurrency", "processes", "lease_s")
    served = {kind: _InWorker(one) for kind, one in handlers.items()}
    with contextlib.closing(Client(given["url"], given["worker_token"])) as client:
        Worker(client, served, initializer=_set_up, **{name: given[name] for name in names}).run(handle_signals)


@dataclass(frozen=True)
class _InWorker:
    """A handler that leaves no database connection behind."""

    handler: Handler[Any]

    @property
    def function(self) -> Callable[..., Any]:
        return self.handler.function

    @property
    def backoff(self) -> Any:
        return self.handler.backoff

    def __call__(self, job: Job[Any]) -> Any:
        return self._run_async(job) if is_async(self.handler) else self._run(job)

    def _run(self, job: Job[Any]) -> Any:
        close_old_connections()
        try:
            return self.handler(job)
        finally:
            if multiprocessing.parent_process() is None:
                connections.close_all()  # The thread ends with its job.
            else:
                close_old_connections()

    async def _run_async(self, job: Job[Any]) -> Any:
        await sync_to_async(close_old_connections)()
        try:
            result: Coroutine[Any, Any, Any] = self.handler(job)
            return await result
        finally:
            await sync_to_async(close_old_connections)()


def _set_up() -> None:
    """Loads Django in a child process of a worker."""
    import django

    django.setup()
