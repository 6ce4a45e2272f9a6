"""The SQL functions as typed calls. The modules `milepost.psycopg`, `milepost.sqlalchemy` and `milepost.django` run them; another library can, too:
`call.statement("%({})s")` is the SQL with the marks of its parameters, `call.parameters` their values, `call.read` converts the rows."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypeVar
from uuid import UUID

from .client import Created, Emitted, NewEvent, NewJob, rfc3339
from .job import Fenced
from .payloads import dumps

R = TypeVar("R")
Rows = Sequence[Sequence[Any]]
Id = str | UUID


@dataclass(frozen=True)
class Call(Generic[R]):
    """A call of a function. Its parameters are texts and lists of texts, which every driver can send; the SQL casts them."""

    function: str
    casts: dict[str, str]  # The type of each parameter.
    parameters: dict[str, str | list[str | None]]
    read: Callable[[Rows], R]
    columns: str = "*"

    def statement(self, mark: str) -> str:
        """Returns the SQL. `mark`: a parameter in the style of the library, with `{}` for its name."""
        arguments = []
        for name, kind in self.casts.items():
            text = f"cast({mark.format(name)} as text{'[]' if kind.endswith('[]') else ''})"
            arguments.append(f"{name} => {text if kind.startswith('text') else f'cast({text} as {kind})'}")
        return f"select {self.columns} from milepost.{self.function}({', '.join(arguments)})"


def _call(function: str, read: Callable[[Rows], R], columns: str = "*", /, **given: tuple[str, Any]) -> Call[R]:
    """Makes a call with the parameters that have a value. `given`: the type and the value of each."""
    present = {name: (kind, value) for name, (kind, value) in given.items() if _is_given(value)}
    casts = {name: kind for name, (kind, _) in present.items()}
    parameters = {name: _list(kind, value) if kind.endswith("[]") else _text(kind, value) for name, (kind, value) in present.items()}
    return Call(function, casts, typing.cast(Any, parameters), read, columns)


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, list) and value and all(one is None for one in value))


def _list(kind: str, values: list[Any]) -> list[str | None]:
    return [None if value is None else _text(kind.removesuffix("[]"), value) for value in values]


def _text(kind: str, value: Any) -> str:
    if kind in ("json", "jsonb"):
        return dumps(value)
    if kind == "timestamptz":
        return rfc3339("a time", value)
    return str(value)


def enqueue(job: NewJob) -> Call[Created]:
    """Creates a job in the transaction. Returns its id, and whether a job of this kind and key existed already (`duplicate`)."""
    many = enqueue_many([job])
    return Call(many.function, many.casts, many.parameters, lambda rows: many.read(rows)[0])


def enqueue_many(jobs: Sequence[NewJob]) -> Call[list[Created]]:
    """Creates jobs in the transaction, in one statement. Returns a result for each, in order."""

    def column(name: str) -> list[Any]:
        return [getattr(job, name) for job in jobs]

    # Another function, so that jobs without a rule cost nothing more.
    rules = column("on_duplicate")
    has_rules = any(rule is not None for rule in rules)
    return _call(
        "enqueue_many_by_key" if has_rules else "enqueue_many", lambda rows: [_created(row) for row in rows],
        on_duplicates=("jsonb[]", rules if has_rules else None),
        kinds=("text[]", column("kind")), payloads=("jsonb[]", [{} if job.payload is None else job.payload for job in jobs]),
        keys=("text[]", column("key")), queues=("text[]", column("queue")), priorities=("int[]", column("priority")),
        groups=("text[]", column("group")), run_ats=("timestamptz[]", column("start_at")), delays_ms=("bigint[]", column("delay_ms")),
        max_attempts=("int[]", column("max_attempts")), timeouts_ms=("bigint[]", column("timeout_ms")),
    )


def cancel(job_id: Id, reason: str | None = None, *, grace_ms: int | None = None) -> Call[str]:
    """Cancels a job in the transaction. Returns `canceled`, or `stop_requested` if the job runs: its handler is asked to stop, and loses the job
    after `grace_ms` (10,000 by default). Needs the role `milepost_worker`."""
    return _call("cancel", lambda rows: str(rows[0][0]), job=("uuid", job_id), reason=("text", reason), grace_ms=("bigint", grace_ms))


def emit(event: NewEvent) -> Call[Emitted]:
    """Emits an event in the transaction. Returns its id and its sequence, and whether it was there before (`duplicate`)."""
    many = emit_many([event])
    return Call(many.function, many.casts, many.parameters, lambda rows: many.read(rows)[0])


def emit_many(events: Sequence[NewEvent]) -> Call[list[Emitted]]:
    """Emits events in the transaction, in one statement. Returns a result for each, in order."""

    def column(name: str) -> list[Any]:
        return [getattr(event, name) for event in events]

    return _call(
        "emit_many", lambda rows: [Emitted(str(event_id), seq, duplicate) for event_id, seq, duplicate in rows],
        aggregate_types=("text[]", column("aggregate_type")), aggregate_ids=("text[]", column("aggregate_id")),
        event_types=("text[]", column("event_type")), payloads=("json[]", [{} if event.payload is None else event.payload for event in events]),
        event_ids=("uuid[]", column("event_id")), aggregate_seqs=("bigint[]", column("aggregate_seq")),
        headers=("jsonb[]", column("headers")), gaps_allowed=("boolean[]", column("gap_allowed")),
    )


def start_batch(
    dag: str, input: Any = None, *, key: str | None = None, version: str | None = None, nominal_at: str | datetime | None = None,
    nominal_zone: str | None = None, input_checked: bool | None = None,
) -> Call[Created]:
    """Starts a batch of a DAG in the transaction. `nominal_at`: the tick for which it is started, `nominal_zone`: the time zone of the tick's date.
    `input_checked`: the caller has checked the input against the schema of the version."""
    return _call(
        "start_batch", lambda rows: _created(rows[0]), dag=("text", dag), key=("text", key), input=("jsonb", input), version=("text", version),
        input_checked=("boolean", input_checked), nominal_at=("timestamptz", nominal_at), nominal_zone=("text", nominal_zone),
    )


def signal(batch_id: Id, name: str, payload: Any = None, *, id: str | None = None, payload_checked: bool | None = None) -> Call[str]:
    """Sends a signal to a batch in the transaction. The task that waits for it succeeds, with `payload` as its output. `id`: a second signal for the
    batch with this id changes nothing. `payload_checked`: the caller has checked the payload against the schema of the wait. Returns
    `accepted`, `duplicate`, or `late` if the task has ended."""
    return _call(
        "signal", lambda rows: str(rows[0][0]), batch=("uuid", batch_id), name=("text", name), payload=("jsonb", payload), id=("text", id),
        payload_checked=("boolean", payload_checked),
    )


def start_bulk(
    name: str, parameters: Any = None, *, key: str | None = None, start_at: str | datetime | None = None, priority: int | None = None,
) -> Call[Created]:
    """Starts a run of a bulk job in the transaction. Returns the id of its job."""
    return _call(
        "start_bulk", lambda rows: _created(rows[0]), name=("text", name), payload=("jsonb", parameters), key=("text", key),
        run_at=("timestamptz", start_at), priority=("int", priority),
    )


@dataclass(frozen=True)
class Event:
    """An event as a consumer receives it from a broker. `emitted_at`: a `datetime` with a time zone, or text in the format of RFC 3339."""

    aggregate_type: str
    aggregate_id: str
    aggregate_seq: int
    event_id: Id
    event_type: str
    payload: Any = None
    headers: dict[str, str] | None = None
    emitted_at: str | datetime | None = None


@dataclass(frozen=True)
class Received:
    """What to do with an event: `apply` it in this transaction, or nothing. `more`: call `next_parked` until it returns `None`."""

    verdict: Literal["apply", "duplicate", "parked", "late"]
    more: bool


def once(consumer: str, event_id: Id) -> Call[bool]:
    """Returns whether a consumer receives this event for the first time. If the transaction is rolled back, the event was not received."""
    return _call("once", lambda rows: bool(rows[0][0]), consumer=("text", consumer), event_id=("uuid", event_id))


def receive(consumer: str, event: Event) -> Call[Received]:
    """Takes an event into the inbox of a consumer, so that the events of an aggregate are applied once and in order."""
    return _call(
        "receive", lambda rows: Received(rows[0][0], rows[0][1]), consumer=("text", consumer), aggregate_type=("text", event.aggregate_type),
        aggregate_id=("text", event.aggregate_id), aggregate_seq=("bigint", event.aggregate_seq), event_id=("uuid", event.event_id),
        event_type=("text", event.event_type), payload=("json", event.payload), headers=("jsonb", event.headers),
        emitted_at=("timestamptz", event.emitted_at),
    )


def next_parked(consumer: str, aggregate_type: str, aggregate_id: str) -> Call[Event | None]:
    """Returns the next event of an aggregate, if the inbox has kept it; `None` otherwise. Apply it in this transaction."""

    def read(rows: Rows) -> Event | None:
        if not rows:
            return None
        event_id, seq, event_type, payload, headers, emitted_at = rows[0]
        return Event(aggregate_type, aggregate_id, seq, event_id, event_type, json.loads(payload), headers and json.loads(headers), emitted_at)

    columns = "cast(event_id as text), aggregate_seq, event_type, cast(payload as text), cast(headers as text), emitted_at"
    given = {"consumer": ("text", consumer), "aggregate_type": ("text", aggregate_type), "aggregate_id": ("text", aggregate_id)}
    return _call("next_parked", read, columns, **given)


class Run(Protocol):
    """A running job: the `Job` of a handler, or any other object with its id and run token."""

    @property
    def id(self) -> str: ...

    @property
    def run_token(self) -> int | None: ...


def complete(job: Run, result: Any = None) -> Call[None]:
    """Ends a running job as succeeded in the transaction of its effects, so that both or neither are stored. Afterwards, the return value of the
    handler is ignored. Raises `Fenced` if the job no longer runs with this run token: let it roll the transaction back. Needs the role
    `milepost_worker`."""
    if job.run_token is None:
        raise ValueError("the job has no run token: the server of the worker is too old to complete jobs in transactions; upgrade it")

    def read(rows: Rows) -> None:
        if rows[0][0] is not True:
            raise Fenced(f"job {job.id} no longer runs with the run token {job.run_token} in this database; roll the transaction back")

    return _call("complete", read, job=("uuid", job.id), run_token=("int", job.run_token), result=("jsonb", result))


def _created(row: Sequence[Any]) -> Created:
    """Reads the id, and whether it is a duplicate or, if jobs of the call have rules, the outcome."""
    if isinstance(row[1], str):
        return Created(str(row[0]), row[1] != "created", row[1])
    return Created(str(row[0]), row[1])
