"""The SQL functions on a connection or session of SQLAlchemy, in its transaction.

Each function takes a `Connection` or `Session`, or an `AsyncConnection` or `AsyncSession`, for which it returns an awaitable:

    with Session(engine) as session, session.begin():
        session.add(Order(...))
        milepost.sqlalchemy.enqueue(session, NewJob("mail", {"to": "ada@example.org"}, key="order-7"))

A session is not flushed before the call. Drivers: psycopg, psycopg2 and asyncpg.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from . import sql
from .errors import translated

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


Sync = Connection | Session | scoped_session[Any]
Async = AsyncConnection | AsyncSession | async_scoped_session[Any]
ASYNC = (AsyncConnection, AsyncSession, async_scoped_session)


class _Function(Protocol[P, R_co]):
    @overload
    def __call__(self, connection: Sync, /, *given: P.args, **named: P.kwargs) -> R_co: ...

    @overload
    def __call__(self, connection: Async, /, *given: P.args, **named: P.kwargs) -> Awaitable[R_co]: ...


def _function(make: Callable[P, sql.Call[R]]) -> _Function[P, R]:
    """Returns a function that makes a call and runs it."""

    @functools.wraps(make)
    def run(connection: Any, /, *given: P.args, **named: P.kwargs) -> Any:
        call = make(*given, **named)
        return _run_async(connection, call) if isinstance(connection, ASYNC) else _run(connection, call)

    return cast(_Function[P, R], run)


def _run(connection: Sync, call: sql.Call[R]) -> R:
    with translated():
        rows = connection.execute(text(call.statement(":{}")), call.parameters).all()
    return call.read(cast(sql.Rows, rows))


async def _run_async(connection: Async, call: sql.Call[R]) -> R:
    with translated():
        rows = (await connection.execute(text(call.statement(":{}")), call.parameters)).all()
    return call.read(cast(sql.Rows, rows))


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
