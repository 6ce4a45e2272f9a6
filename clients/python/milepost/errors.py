"""Exceptions for the SQLSTATEs of Milepost's SQL functions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .client import MilepostError


class SqlError(MilepostError):
    """A function rejected its call. `sqlstate` is stable; `detail` is the DETAIL of the error, such as the state of a job, or `None`. The driver's
    exception is the `__cause__`. The transaction has failed: roll it back, or roll back to a savepoint."""

    def __init__(self, message: str, sqlstate: str, detail: str | None = None) -> None:
        super().__init__(f"{sqlstate}: {message}" + (f" ({detail})" if detail else ""))
        self.sqlstate, self.detail = sqlstate, detail


class InvalidJob(SqlError):
    """A job, its payload, or a reason cannot be accepted; the message contains the position in the call and the fault."""


class NoSuchJob(SqlError):
    """The job does not exist: it never did, or retention has deleted it."""


class WrongState(SqlError):
    """The state of the job, the batch or the task does not allow the call; `detail` is the state."""


class StoreMoves(SqlError):
    """The store is being filled by `milepost move`."""


class NoSuchBulkJob(SqlError):
    """There is no bulk job of this name: workers store those of their configuration when they start."""


class TargetsInFile(SqlError):
    """The bulk job takes its targets from a file: start it with `milepost bulk start --from`."""


class NoSuchBatch(SqlError):
    """There is no such DAG, version, batch or task."""


class InvalidInput(SqlError):
    """The input of a batch or the result of a job cannot be accepted. Or: the version of the DAG has a schema, which SQL cannot check; check the
    input and pass `input_checked=True`."""


class InvalidEvent(SqlError):
    """An event cannot be accepted; `detail` is `arrays`, `name`, `sequence`, `headers` or `payload`."""


class WrongSequence(SqlError):
    """The sequence of an event does not follow; `detail` is `repeated` or `gap`, and the last sequence of the aggregate."""


class EventIdTaken(SqlError):
    """The `event_id` belongs to an event with other content; `detail` is the id."""


class InvalidInboxCall(SqlError):
    """A call of the inbox cannot be accepted; `detail` is `consumer`, `event`, `sequence` or `settings`."""


class InvalidValue(SqlError):
    """PostgreSQL cannot convert a value: an id that is no UUID, or JSON with a NUL character or half of a surrogate pair."""


class NotMigrated(SqlError):
    """The database has no tables and functions of Milepost, or those of an older version: run `milepost migrate`."""


BY_SQLSTATE: dict[str, type[SqlError]] = {
    "MP001": InvalidJob, "MP002": NoSuchJob, "MP003": WrongState, "MP004": StoreMoves, "MP007": NoSuchBulkJob, "MP008": TargetsInFile,
    "MP010": NoSuchBatch, "MP011": InvalidInput, "MP012": WrongState, "MP015": InvalidEvent, "MP016": WrongSequence, "MP017": EventIdTaken,
    "MP018": InvalidInboxCall, "22P02": InvalidValue, "22P05": InvalidValue, "3F000": NotMigrated, "42883": NotMigrated,
}


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Replaces errors of a driver, of SQLAlchemy or of Django by the exceptions of this module. Other errors, such as serialization failures, are
    raised unchanged."""
    try:
        yield
    except Exception as error:
        if (known := _known(error)) is not None:
            raise known from error
        raise


def _known(raised: Exception) -> SqlError | None:
    error: Any = raised
    while error is not None:
        sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        diagnosis = getattr(error, "diag", None)  # psycopg; asyncpg has the same parts as attributes of the error.
        message = getattr(diagnosis, "message_primary", None) or getattr(error, "message", None)
        if sqlstate and message:
            detail = getattr(diagnosis, "message_detail", None) or getattr(error, "detail", None)
            remedy = "; run `milepost migrate` with the store's address, or `manage.py milepost_migrate`" if BY_SQLSTATE.get(sqlstate) is NotMigrated else ""
            return BY_SQLSTATE[sqlstate](message + remedy, sqlstate, detail) if sqlstate in BY_SQLSTATE else None
        error = getattr(error, "orig", None) or error.__cause__
    return None
