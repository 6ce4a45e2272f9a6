"""Processes of the measured programs, and the processor time and memory that they use."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def busy_seconds() -> float:
    """Returns the processor time of the whole machine that was not idle."""
    fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, _steal = fields
    return (user + nice + system + irq + softirq) / TICKS


def descendants(pid: int) -> list:
    """Returns a process and the processes that it has started."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, pending = [], [pid]
    while pending:
        found.append(pending.pop())
        pending += children.get(found[-1], [])
    return found


def used(pid: int) -> tuple:
    """Returns the processor seconds and the resident bytes of a process and its descendants."""
    seconds, resident = 0.0, 0
    for one in descendants(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        seconds += (int(fields[11]) + int(fields[12])) / TICKS
        resident += int(fields[21]) * PAGE
    return seconds, resident


def call(command: list, env: dict, timeout: float) -> str:
    """Runs a command to its end; returns its standard output."""
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{command[-2:]} did not end within {timeout:.0f} s") from error
    if done.returncode:
        raise RuntimeError(f"{command[1:]} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


def call_json(command: list, env: dict, timeout: float) -> dict:
    """Runs a command; returns the JSON object on the last line of its output."""
    lines = call(command, env, timeout).strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


class Worker:
    """A running `work` program in a process group."""

    def __init__(self, command: list, env: dict, errors: Path) -> None:
        self.errors = errors
        with open(errors, "ab") as file:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file,
                                            start_new_session=True)

    def check(self) -> None:
        """Fails if the worker has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"the worker ended: {self.errors.read_text(errors='replace').strip()[-400:]}")

    def kill(self) -> None:
        """Kills the whole group without a chance to clean up."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds: float = 15) -> None:
        """Asks the worker to stop; kills it if it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            deadline = time.monotonic() + seconds
            while self.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.process.poll() is None:
            self.kill()
