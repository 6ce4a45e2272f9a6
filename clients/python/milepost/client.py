"""The API: jobs are created and looked at. A client may be used by many threads; it keeps as many connections as they use at once."""

from __future__ import annotations

import http.client
import json
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit


class Problem(Exception):
    """The server cannot do what was asked. `code` is stable; `at` says where in the request."""

    def __init__(self, status: int, code: str, detail: str, at: str | None) -> None:
        super().__init__(f"{code}: {detail}" + (f" (at {at})" if at else ""))
        self.status, self.code, self.detail, self.at = status, code, detail, at


class Unreachable(Exception):
    """The server did not answer; whether it did what was asked is not known."""


@dataclass(frozen=True)
class NewJob:
    """A job to be created. With a `key` that can be repeated: at most one job of a kind ever has it."""

    kind: str
    payload: Any = None
    queue: str | None = None
    key: str | None = None
    group: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    timeout_ms: int | None = None
    delay_ms: int | None = None
    start_at: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Created:
    """The job that stands for a request; `duplicate`: it was there before, under the same key."""

    id: str
    duplicate: bool


class Client:
    """Speaks to the server at `url`."""

    def __init__(self, url: str = "http://127.0.0.1:7070", token: str | None = None, timeout_s: float = 60.0) -> None:
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise ValueError(f"{url!r} is not the address of a server, such as http://127.0.0.1:7070")
        self._place, self._token, self._timeout_s = place, token, timeout_s
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Closes the connections that nobody uses; the next request opens one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def create(self, job: NewJob) -> Created:
        """Creates a job; returns when it is durable. Tried again while the server does not answer: under an `Idempotency-Key`, so that
        there is one job in any case."""
        headers = {} if job.key else {"Idempotency-Key": str(uuid.uuid4())}
        return Created(**self.ask("POST", "/v1/jobs", job.as_json(), headers=headers, tries=4))

    def create_many(self, jobs: Sequence[NewJob]) -> list[Created]:
        """Creates up to 5,000 jobs, all or none."""
        body = {"jobs": [job.as_json() for job in jobs]}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self.ask("POST", "/v1/jobs/create-many", body, headers=headers, tries=4)
        return [Created(**created) for created in answer["jobs"]]

    def job(self, job_id: str) -> dict[str, Any]:
        """A job, with its payload, its result, and why it does not run now."""
        return self.ask("GET", f"/v1/jobs/{quote(job_id, safe='')}", tries=4)

    def jobs(self, **only: str) -> Iterator[dict[str, Any]]:
        """Jobs, the newest first; `only`: state, kind, queue, key."""
        cursor: dict[str, str] = {}
        while True:
            page = self.ask("GET", "/v1/jobs?" + urlencode({**only, **cursor}), tries=4)
            yield from page["items"]
            if "next_cursor" not in page:
                return
            cursor = {"cursor": page["next_cursor"]}

    def operate(self, job_id: str, operation: str, **more: Any) -> str:
        """Does something to a job (cancel, retry, snooze, …); answers its state, or `stop_requested`."""
        body = {"operation": operation, **more}
        return self.ask("POST", f"/v1/jobs/{quote(job_id, safe='')}/operate", body)["outcome"]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        tries: int = 1,
        timeout_s: float | None = None,
    ) -> Any:
        """One request. Raises `Problem` for what the server refuses, `Unreachable` when it does not answer after all tries."""
        for left in reversed(range(tries)):
            try:
                return self._ask_once(method, path, body, headers or {}, timeout_s or self._timeout_s)
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    raise Unreachable(f"{self._place.netloc} does not answer: {error}") from error
            except Problem as problem:
                if problem.status != 503 or not left:
                    raise
            time.sleep(0.2 * 2 ** (tries - 1 - left))
        raise AssertionError("a request is tried at least once")

    def _ask_once(self, method: str, path: str, body: Any, headers: dict[str, str], timeout_s: float) -> Any:
        all_headers = {"Content-Type": "application/json", **headers}
        if self._token:
            all_headers["Authorization"] = f"Bearer {self._token}"
        text = None if body is None else json.dumps(body, allow_nan=False).encode()
        connection = self._connection(timeout_s)
        try:
            connection.request(method, self._place.path.rstrip("/") + path, text, all_headers)
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        if response.status < 400:
            return json.loads(answer) if answer else None
        try:
            problem = json.loads(answer)
            raise Problem(response.status, problem["code"], problem["detail"], problem.get("at"))
        except (ValueError, KeyError, TypeError):
            text_of = answer[:200].decode(errors="replace")
            raise Problem(response.status, "not_milepost", f"the answer is not Milepost's: {text_of}", None) from None

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            kind = http.client.HTTPSConnection if self._place.scheme == "https" else http.client.HTTPConnection
            connection = kind(self._place.hostname or "", self._place.port)
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection
