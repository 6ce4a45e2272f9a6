"""Jobs for tests that call a handler as a function."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from typing import Any, TypeVar

from .job import Job

T = TypeVar("T")


class _NoServer:
    def _tell(self, holder: int, verb: str, body: Any, answers: str, tries: int = 1, timeout_s: float | None = None) -> Any:
        return [True] * len(body["runs"])


def job(
    payload: T, *, kind: str = "test", checkpoint: Any = None, attempt: int = 1, max_attempts: int = 25, nominal_at: datetime | None = None,
) -> Job[T]:
    """Returns a job that no worker runs. Its reports are accepted and stored nowhere. It has no run token, so `complete` refuses it: to test a
    handler that calls `complete`, run it with a worker."""
    return Job(
        id=str(uuid.uuid4()), kind=kind, queue="default", payload=payload, checkpoint=checkpoint, attempt=attempt, max_attempts=max_attempts,
        timeout_ms=None, group=None, batch=None, run="test", run_token=None, traceparent=None,
        _created_at=datetime.now(timezone.utc).isoformat(), _nominal_at=nominal_at and nominal_at.isoformat(), _worker=_NoServer(), _holder=0,
    )
