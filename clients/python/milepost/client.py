"""Client of the HTTP API. Threads can share a client; it keeps one connection for each concurrent request."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from .payloads import dumps

IDLE_S = 30.0  # How long an idle connection is kept: the server closes it after 60 s.
RETRY_AFTER_MAX_S = 30.0  # The maximum wait that a server can request.
ENDED = ("succeeded", "failed", "aborted", "canceled", "skipped")  # States of jobs that do not run again unless an operator requests it.
WAIT_PAUSE_MIN_S, WAIT_PAUSE_MAX_S = 0.1, 1.0  # Pauses between the requests of `Client.wait`.


class MilepostError(Exception):
    """Base class of the errors that Milepost reports to its callers: `Problem`, `Unreachable`, and `SqlError` with its subclasses."""


class Problem(MilepostError):
    """The server rejected the request. `code` is stable; `at` is the position in the request; `retry_after_s` is the requested wait."""

    def __init__(self, status: int, code: str, detail: str, at: str | None, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{code}: {detail}" + (f" (at {at})" if at else ""))
        self.status, self.code, self.detail, self.at, self.retry_after_s = status, code, detail, at, retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        return Problem, (self.status, self.code, self.detail, self.at, self.retry_after_s)

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 429) or self.status >= 500


class Unreachable(MilepostError):
    """The server did not answer. It may or may not have executed the request."""

    code, retry_after_s, passes = "unreachable", 0.0, True


def pause_after(error: Exception, failures: int) -> float:
    """Returns how long to wait before a retry: longer after each failure, and at least as long as the server requests (up to 30 s)."""
    return max(min(getattr(error, "retry_after_s", 0.0), RETRY_AFTER_MAX_S), 0.2 * (1 << min(failures, 4)))


def part(answer: Any, name: str, kind: type) -> Any:
    """Returns a part of an answer. Raises `Unreachable` if it is missing, as in an answer of a proxy: the result is then unknown."""
    if isinstance(answer, dict) and isinstance(answer.get(name), kind):
        return answer[name]
    raise Unreachable(f"the answer is not from Milepost: it has no {name!r}: {str(answer)[:200]}")


def rfc3339(name: str, time: str | datetime) -> str:
    """Returns a time as the server reads it. Raises `ValueError` if it has no time zone. `name`: the parameter that contains it."""
    if not isinstance(time, datetime):
        # PostgreSQL would read it in the time zone of the session.
        if not re.search(r"(?:[Zz]|[+-]\d\d:?\d\d)\s*\Z", time):
            raise ValueError(f"{name} has no time zone: {time!r}; append Z for UTC, or an offset such as +01:00")
        return time
    if time.utcoffset() is None:
        raise ValueError(f"{name} has no time zone: use datetime.now(timezone.utc), or convert a local time with its method astimezone()")
    return time.astimezone(timezone.utc).isoformat()


@dataclass(frozen=True)
class NewJob:
    """A job to be created. With a `key` the request can be repeated: at most one job of a kind has a given key. `on_duplicate`: what happens to the
    job that holds the key, such as `{"action": "replace"}`. `start_at`: a `datetime` with a time zone, or text in the format of RFC 3339."""

    kind: str
    payload: Any = None
    queue: str | None = None
    key: str | None = None
    group: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    timeout_ms: int | None = None
    delay_ms: int | None = None
    start_at: str | datetime | None = None
    on_duplicate: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.start_at is not None:
            rfc3339("start_at", self.start_at)

    def as_json(self) -> dict[str, Any]:
        return _given(self, "start_at")


@dataclass(frozen=True)
class NewEvent:
    """An event to be emitted, about the aggregate `aggregate_type` `aggregate_id`. `event_id`: with it, the call can be repeated. `aggregate_seq`: only
    if the application assigns the sequences, with `gap_allowed` also with gaps."""

    aggregate_type: str
    aggregate_id: str
    event_type: str
    payload: Any = None
    event_id: str | uuid.UUID | None = None
    aggregate_seq: int | None = None
    headers: Mapping[str, str] | None = None
    gap_allowed: bool | None = None

    def as_json(self) -> dict[str, Any]:
        return _given(self)


def _given(request: NewJob | NewEvent, *times: str) -> dict[str, Any]:
    """Returns the fields that have a value."""
    values = {field.name: getattr(request, field.name) for field in fields(request)}
    given = {name: value for name, value in values.items() if value is not None}
    return {name: rfc3339(name, value) if name in times else value for name, value in given.items()}


@dataclass(frozen=True)
class Created:
    """The job or batch that a request created. `duplicate`: it already existed under the same key. `outcome`: what the request did to a job:
    `created`, `kept`, `replaced`, `moved` or `dropped`."""

    id: str
    duplicate: bool
    outcome: str | None = None

    @classmethod
    def of(cls, answer: Any) -> Created:
        return cls(part(answer, "id", str), part(answer, "duplicate", bool), answer.get("outcome"))


@dataclass(frozen=True)
class Emitted:
    """An event in the log: its id, and its sequence in its aggregate. `duplicate`: it was there before."""

    event_id: str
    aggregate_seq: int
    duplicate: bool


class Client:
    """A client of the server at `url`. Its methods raise `Problem` if the server rejects a request, and `Unreachable` if it does not answer."""

    def __init__(self, url: str = "http://127.0.0.1:7070", token: str | None = None, timeout_s: float = 60.0) -> None:
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise ValueError(f"{url!r} is not the address of a server, such as http://127.0.0.1:7070")
        self._place, self._timeout_s = place, timeout_s
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._lock = threading.Lock()
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []  # Idle connections, and since when they are idle.
        self._closed = 0  # How often `close` was called.
        self._in_use: dict[int | None, http.client.HTTPConnection] = {}  # Connections by the thread that uses them.

    @property
    def address(self) -> str:
        """The server's address for logs: without a user name and a password."""
        return f"{self._place.scheme}://{self._place.netloc.rpartition('@')[2]}{self._place.path}"

    def close(self) -> None:
        """Closes the idle connections, and those of requests in progress after their answers. The next request opens a new one."""
        with self._lock:
            self._closed += 1
            while self._idle:
                self._idle.pop()[0].close()

    def _interrupt(self, thread: threading.Thread) -> None:
        """Closes the connection of a thread's request, which then raises `Unreachable`."""
        if (connection := self._in_use.get(thread.ident)) is not None:
            _cut(connection)

    def create(self, job: NewJob) -> Created:
        """Creates a job; returns when it is durable. Retries if necessary, with an `Idempotency-Key`, so that only one job is created."""
        return self._create("/v1/jobs", job.as_json())

    def _create(self, path: str, body: dict[str, Any]) -> Created:
        given = {name: value for name, value in body.items() if value is not None}
        headers = {} if "key" in given else {"Idempotency-Key": str(uuid.uuid4())}
        return Created.of(self.ask("POST", path, given, headers=headers, tries=4))

    def create_many(self, jobs: Sequence[NewJob]) -> list[Created]:
        """Creates up to 5,000 jobs: all or none."""
        body = {"jobs": [job.as_json() for job in jobs]}
        answer = self.ask("POST", "/v1/jobs/create-many", body, headers={"Idempotency-Key": str(uuid.uuid4())}, tries=4)
        return [Created.of(created) for created in part(answer, "jobs", list)]

    def start_batch(
        self, dag: str, input: Any = None, *, key: str | None = None, nominal_at: str | datetime | None = None,
        nominal_zone: str | None = None,
    ) -> Created:
        """Starts a batch of a DAG; returns when it is durable. `nominal_at` is the tick for which it is started (a `datetime` with a time zone,
        or RFC 3339), `nominal_zone` the time zone of the tick's date. Retries if necessary, like `create`."""
        tick = None if nominal_at is None else rfc3339("nominal_at", nominal_at)
        given = {"dag": dag, "input": input, "key": key, "nominal_at": tick, "nominal_zone": nominal_zone}
        return self._create("/v1/batches", given)

    def signal(self, batch_id: str, name: str, payload: Any = None, *, id: str | None = None, reason: str | None = None) -> str:
        """Sends a signal to a batch; returns when it is durable: `accepted`, `duplicate` (the batch has a signal with this `id`), or `late` (the
        task has ended). The task that waits for it succeeds, with `payload` as its output. Retries if necessary, like `create`."""
        body = {"name": name, "payload": payload, "id": id or str(uuid.uuid4()), "reason": reason}
        answer = self.ask("POST", f"/v1/batches/{quote(batch_id, safe='')}/signals", body, tries=4)
        return str(part(answer, "result", str))

    def start_bulk(
        self, name: str, parameters: Any = None, *, key: str | None = None, start_at: str | datetime | None = None,
        priority: int | None = None,
    ) -> Created:
        """Starts a run of a bulk job; returns when it is durable. `id` is the id of its job. Retries if necessary, like `create`."""
        at = None if start_at is None else rfc3339("start_at", start_at)
        given = {"name": name, "parameters": parameters, "key": key, "start_at": at, "priority": priority}
        return self._create("/v1/bulk-runs", given)

    def emit(self, event: NewEvent) -> Emitted:
        """Emits an event; returns when it is durable. Retries if necessary, like `create`."""
        return self.emit_many([event])[0]

    def emit_many(self, events: Sequence[NewEvent]) -> list[Emitted]:
        """Emits up to 1,000 events: all or none. Events of one aggregate are emitted in this order."""
        body = {"events": [event.as_json() for event in events]}
        answer = self.ask("POST", "/v1/events", body, headers={"Idempotency-Key": str(uuid.uuid4())}, tries=4)
        return [Emitted(**emitted) for emitted in part(answer, "events", list)]

    def job(self, job_id: str) -> dict[str, Any]:
        """Returns a job with its payload, its result, and the reason why it is not running."""
        return dict(self.ask("GET", f"/v1/jobs/{quote(job_id, safe='')}", tries=4))

    def wait(self, job_id: str, timeout_s: float) -> dict[str, Any]:
        """Returns a job, like `job`, as soon as its state is `succeeded`, `failed`, `aborted`, `canceled` or `skipped`. Requests that may succeed
        later are repeated. Raises `TimeoutError` if the job has not ended within `timeout_s`."""
        for step in self._wait_steps(job_id, timeout_s):
            if isinstance(step, dict):
                return step
            time.sleep(step)
        raise AssertionError("the steps end with the job")

    def _wait_steps(self, job_id: str, timeout_s: float) -> Iterator[float | dict[str, Any]]:
        """Yields the pauses of `wait`, in seconds, and at the end the job."""
        until, pause_s = time.monotonic() + timeout_s, WAIT_PAUSE_MIN_S
        while True:
            try_s = max(min(self._timeout_s, until - time.monotonic()), WAIT_PAUSE_MAX_S)
            cause: Exception | None = None
            try:
                view = self.ask("GET", f"/v1/jobs/{quote(job_id, safe='')}", timeout_s=try_s)
                state = part(view, "state", str)
                if state in ENDED:
                    yield dict(view)
                    return
                last = f"its state is {state}"
            except (Unreachable, Problem) as error:
                if not error.passes:
                    raise
                last, cause, pause_s = str(error), error, max(pause_s, pause_after(error, 0))
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"job {job_id} has not ended within {timeout_s} s: {last}") from cause
            yield min(pause_s, left)
            pause_s = min(pause_s * 2, WAIT_PAUSE_MAX_S)

    def jobs(self, **only: str | datetime) -> Iterator[dict[str, Any]]:
        """Yields jobs, newest first. `only`: filters by state, kind, queue, key, error or payload, and by the times `created_from`,
        `created_before` and `failed_from`."""
        given = {name: rfc3339(name, value) if isinstance(value, datetime) else value for name, value in only.items()}
        while True:
            page = self.ask("GET", "/v1/jobs?" + urlencode(given), tries=4)
            yield from page["items"]
            if "next_cursor" not in page:
                return
            given["cursor"] = page["next_cursor"]

    def cancel(self, job_id: str, reason: str | None = None, *, grace_ms: int | None = None) -> str:
        """Cancels a job. Returns `canceled`, or `stop_requested` if the job runs: its handler is asked to stop, and loses the job after `grace_ms`
        (10,000 by default)."""
        given = {"reason": reason, "grace_ms": grace_ms}
        return self.operate(job_id, "cancel", **{name: value for name, value in given.items() if value is not None})

    def operate(self, job_id: str, operation: str, **more: Any) -> str:
        """Performs an operation on a job (cancel, retry, snooze, …). Returns its state, or `stop_requested`."""
        return str(self.ask("POST", f"/v1/jobs/{quote(job_id, safe='')}/operate", {"operation": operation, **more})["outcome"])

    def ask(
        self, method: str, path: str, body: Any = None, *,
        headers: dict[str, str] | None = None, tries: int = 1, timeout_s: float | None = None,
    ) -> Any:
        """Sends a request. Raises `Problem` if the server rejects it, and `Unreachable` if all attempts remain unanswered. `body`: a
        value that can be converted to JSON, or JSON as `bytes`."""
        for failures in range(tries):
            try:
                return self._ask_once(method, path, body, headers or {}, timeout_s or self._timeout_s)
            except (Unreachable, Problem) as error:
                if failures + 1 == tries or not error.passes:
                    raise
                time.sleep(pause_after(error, failures))
        raise ValueError("`tries` must be at least 1")

    def _ask_once(self, method: str, path: str, body: Any, headers: dict[str, str], timeout_s: float) -> Any:
        text = body if body is None or isinstance(body, bytes) else dumps(body).encode()
        connection, closed = self._connection(timeout_s), self._closed
        # The socket's timeout applies to each read: a slow, steady answer would never exceed it.
        limit, until = threading.Timer(min(timeout_s, threading.TIMEOUT_MAX), _cut, (connection,)), time.monotonic() + timeout_s
        limit.daemon = True
        limit.start()
        self._in_use[threading.get_ident()] = connection
        try:
            sent = _send(connection, method, self._place.path.rstrip("/") + path, text, {**self._headers, **headers})
            response = connection.getresponse()
            answer = response.read()
            if not sent:
                connection.close()  # The next request opens it again.
            if time.monotonic() >= until:  # Truncated headers look complete.
                raise TimeoutError(f"no complete answer within {timeout_s} s")
        except BaseException as error:
            connection.close()
            if isinstance(error, (OSError, http.client.HTTPException)):
                self.close()  # The other connections may be broken as well: each would fail a request.
                raise Unreachable(f"{self.address} does not answer: {error}") from error
            raise
        finally:
            limit.cancel()
            self._in_use.pop(threading.get_ident(), None)
        with self._lock:
            if closed == self._closed:
                self._idle.append((connection, time.monotonic()))
            else:
                connection.close()
        retry_after = response.headers.get("Retry-After", "")
        retry_after_s = float(retry_after) if retry_after.isdecimal() else 0.0
        try:
            said: Any = json.loads(answer) if response.status != 204 else None
            if response.status < 400:
                return said
            raise Problem(response.status, said["code"], said["detail"], said.get("at"), retry_after_s)
        except (ValueError, KeyError, TypeError, AttributeError):
            detail = f"the answer is not from Milepost: {answer[:200].decode(errors='replace')}"
            if response.status < 400:  # A proxy's answer says nothing about the request.
                raise Unreachable(detail) from None
            raise Problem(response.status, "not_milepost", detail, None, retry_after_s) from None

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._place.scheme == "https" else http.client.HTTPConnection
        with self._lock:
            while self._idle:
                connection, since = self._idle.pop()
                if time.monotonic() - since < IDLE_S:
                    break
                connection.close()
            else:
                connection = kind(self._place.hostname or "", self._place.port)
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection


def _send(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bool:
    """Sends a request. Returns whether it was sent completely: a server that rejects a large request answers, and closes the connection,
    before it has received all of it."""
    try:
        connection.request(method, path, body, headers)
    except ConnectionError:
        if connection.sock is None:  # The connection could not be opened.
            raise
        return False
    return True


def _cut(connection: http.client.HTTPConnection) -> None:
    if (sock := connection.sock) is not None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
