"""A server for a store in a SQLite file, for programs on one machine.

A SQLite store has no SQL functions: programs create and run jobs through `milepost serve`, with `Client` and `Worker`, after their own commit. This
module starts such a server for a script, a test or a development machine:

    with milepost.sqlite.serve("jobs.db") as client:
        client.create(NewJob("mail", {"to": "ada@example.org"}))
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from .client import Client, MilepostError

SERVING = re.compile(r"serving (http://\S+)")
STOP_S = 30.0  # How long the server may take to stop.


class NotServed(MilepostError):
    """The program `milepost` could not be started, or ended. The message is its output."""


@contextlib.contextmanager
def serve(path: str | os.PathLike[str], *, listen: str = "127.0.0.1:0", program: str = "milepost", timeout_s: float = 60.0) -> Iterator[Client]:
    """Runs `milepost serve` on a store in this file, which is created if it does not exist, and yields a client of it. `listen`: the address; port 0
    means any free port. `program`: the path of `milepost`. The server does not read `milepost.toml`, and stops at the end of the `with` block. Raises
    `NotServed` if the server is not ready within `timeout_s`."""
    store = f"sqlite:{Path(path).absolute()}"
    command = [program, "serve", "--only", "api", "--store", store, "--listen", listen]
    environment = {**os.environ, "MILEPOST_LOG_FORMAT": "text"}
    try:
        server = subprocess.Popen(command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        raise NotServed(f"{program} cannot be started: {error}; install milepost, or pass its path as `program`") from error
    limit = threading.Timer(timeout_s, server.kill)
    try:
        limit.start()
        client = Client(_address(server))
        limit.cancel()
        try:
            yield client
        finally:
            client.close()
    finally:
        limit.cancel()
        _stop(server)


def _address(server: subprocess.Popen[str]) -> str:
    """Reads the server's log until it contains the address, and in a thread to its end, so that the server does not wait for a reader."""
    assert server.stderr is not None
    printed = []
    for line in server.stderr:
        printed.append(line)
        if found := SERVING.search(line):
            threading.Thread(target=_discard, args=(server.stderr,), daemon=True).start()
            return found[1]
    raise NotServed("".join(printed).strip() or f"the server ended with the status {server.wait()}")


def _discard(log: Iterator[str]) -> None:
    with contextlib.suppress(ValueError):  # The log is closed.
        for _ in log:
            pass


def _stop(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stderr is not None:
        server.stderr.close()
