"""Ends of runs: what a handler returned or raised, as the worker reports and logs it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from typing import Any

from .job import STOPPED, Cancelled, Failed, Fenced, Job, Snooze
from .payloads import dumps

log = logging.getLogger("milepost")

NOT_TAKEN = "end_not_taken"  # Error code of a run whose end is not JSON, or is rejected by the server.
LOGGED_MAX = 1_000  # Maximum number of characters of a failure's message in a line of the log.


def after_error(error: BaseException, job: Job[Any]) -> dict[str, Any]:
    """Returns the end of a run whose handler raised an error. Each run gets an end, also after an error that cannot be described."""
    with contextlib.suppress(BaseException):  # For example, a subclass that has not called `__init__`.
        if isinstance(error, Snooze):
            return {"outcome": "snoozed", "delay_ms": error.delay_ms, "message": text(error.why)}
        if isinstance(error, Fenced) and not job.stop_requested:
            return failure("fenced", error)  # Not `canceled`: in another database than the store's, it would end a job that still runs.
        if isinstance(error, Cancelled) or (isinstance(error, asyncio.CancelledError) and job.stop_requested):
            return {"outcome": STOPPED.get(job._reason, "canceled")}
        if isinstance(error, Failed):
            return {**failure(error.code, error), "retryable": bool(error.retryable), **error.delay}
    try:
        return failure(type(error).__name__, "".join(traceback.format_exception(error, limit=-5))[-2000:])
    except BaseException:  # noqa: BLE001
        return failure("failed", "the error that the handler raised cannot be described")


def failure(code: Any, message: Any) -> dict[str, Any]:
    """Returns the end of a failed run."""
    return {"outcome": "failed", "error_code": text(code, 200) or "failed", "message": text(message)}


def encoded(run: str, end: dict[str, Any], backoff: dict[str, Any] | None) -> tuple[dict[str, Any], bytes]:
    """Returns the end of a run, and its JSON. A result that is not JSON fails the run. `backoff`: that of the kind."""
    try:
        return end, _said(run, end, backoff)
    except BaseException as error:  # noqa: BLE001: the result can be an object of any class
        failed = failure(NOT_TAKEN, f"the result is not JSON: {_described(error)[-2000:]}")
        return failed, _said(run, failed, backoff)


def _said(run: str, end: dict[str, Any], backoff: dict[str, Any] | None) -> bytes:
    with_backoff = {"backoff": backoff} if backoff and end["outcome"] == "failed" else {}
    return dumps({"run": run, **end, **with_backoff}).encode()


def log_failure(job: Job[Any], end: dict[str, Any] | None, error: BaseException | None) -> None:
    """Logs the end of a run if it is a failure. `error`: what the handler raised. The log contains the traceback of an error that the handler
    did not raise as `Failed`; that of a `Failed` only at level DEBUG."""
    if end is None or end["outcome"] != "failed":
        return
    if isinstance(error, Fenced):
        then = "the job no longer belongs to this run"
    elif job._reason == "lost":
        then = "this is not reported, because the worker has lost the job"
    elif job._reason in STOPPED:
        then = "no attempt follows, because a stop was requested"
    elif job.attempt >= job.max_attempts or not end.get("retryable", True):
        then = "no attempt follows"
    else:
        then = "another attempt follows"
    is_expected = error is None or isinstance(error, (Failed, Fenced))
    why = f"{end['error_code']}: {end['message']}" if is_expected else _described(error)
    shown = None if is_expected and not log.isEnabledFor(logging.DEBUG) else error
    words = "job %s (%s): attempt %s of %s failed; %s: %s"
    log.warning(words, job.id, job.kind, job.attempt, job.max_attempts, then, text(why, LOGGED_MAX), exc_info=shown)


def _described(error: BaseException | None) -> str:
    try:
        return "".join(traceback.format_exception_only(error)).strip()
    except BaseException:  # noqa: BLE001: for example, an error whose attributes cannot be read
        return type(error).__name__


def text(words: Any, chars_max: int = 10_000) -> str:
    """Returns text that the server accepts, of at most as many characters as it keeps. Halves of surrogate pairs, which file names can
    contain, are replaced."""
    return ("" if words is None else str(words))[:chars_max].encode("utf-8", "replace").decode()
