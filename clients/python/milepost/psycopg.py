"""The SQL functions on a connection of psycopg 3, in its transaction.

Each function takes a `psycopg.Connection`, or a `psycopg.AsyncConnection`, for which it returns an awaitable:

    with conn.transaction():
        conn.execute("insert into orders …")
        milepost.psycopg.enqueue(conn, NewJob("mail", {"to": "ada@example.org"}, key="order-7"))
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

import psycopg
from psycopg.rows import tuple_row

from . import sql
from .errors import translated

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _Function(Protocol[P, R_co]):
    @overload
    def __call__(self, connection: psycopg.Connection[Any], /, *given: P.args, **named: P.kwargs) -> R_co: ...

    @overload
    def __call__(self, connection: psycopg.AsyncConnection[Any], /, *given: P.args, **named: P.kwargs) -> Awaitable[R_co]: ...


def _function(make: Callable[P, sql.Call[R]]) -> _Function[P, R]:
    """Returns a function that makes a call and runs it."""

    @functools.wraps(make)
    def run(connection: Any, /, *given: P.args, **named: P.kwargs) -> Any:
        call = make(*given, **named)
        return _run_async(connection, call) if isinstance(connection, psycopg.AsyncConnection) else _run(connection, call)

    return cast(_Function[P, R], run)


def _run(connection: psycopg.Connection[Any], call: sql.Call[R]) -> R:
    with translated(), connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(call.statement("%({})s").encode(), call.parameters).fetchall()
    return call.read(rows)


async def _run_async(connection: psycopg.AsyncConnection[Any], call: sql.Call[R]) -> R:
    with translated():
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(call.statement("%({})s").encode(), call.parameters)
            rows = await cursor.fetchall()
    return call.read(rows)


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
