"""The measurements of one system: throughput, latency, a crash, and idle cost."""

import json
import os
import re
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from . import process, stats
from .server import Server
from .systems import CRASH, IDLE, LATENCY, SQLITE, System

# The duration of a job in the crash measurement, so that jobs are running when the worker is killed.
CRASH_JOB_MS = 20
CALL_MAX_S = 1800


@dataclass
class Sizes:
    """The sizes of the measurements."""

    jobs: int
    rate: int = 300
    latency_s: int = 10
    idle_s: int = 10
    crash_jobs: int = 5000
    crash_wait_s: int = 240


class Bench:
    """One system with its program and a database."""

    def __init__(self, system: System, program: list, own: Path | None, server: Server | None, work: Path) -> None:
        self.system, self.program, self.own, self.server = system, program, own, server
        self.folder = work / system.folder
        self.database = "bench"
        self.file = work / f"{system.folder}.db"
        self.log = self.folder / "starts.log"
        self.jobs = 0
        self.url = ""

    @property
    def on_sqlite(self) -> bool:
        return self.system.store == SQLITE

    def fresh(self, setup: bool = True) -> None:
        """Creates an empty database with the system's schema."""
        if self.on_sqlite:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.file}{suffix}").unlink(missing_ok=True)
            self.url = f"sqlite:{self.file}"
            os.sync()
        else:
            self.url = self.server.fresh_database(self.database)
        self.log.unlink(missing_ok=True)
        if setup:
            self.prepare()

    def prepare(self) -> None:
        if self.system.name == "absurd":
            process.call([str(self.folder / "venv/bin/absurdctl"), "init", "-d", self.url], self.env(), 60)
        if self.system.name == "riverqueue":
            process.call([str(self.own), "migrate-up"], self.env(), 60)
        elif self.program:
            self.ask("setup")

    def env(self) -> dict:
        return {**os.environ, "DATABASE_URL": self.url, "BENCH_UNFINISHED": self.unfinished_sql(), "NODE_ENV": "production",
                "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "rivals"), "PATH": f"{self.folder}/venv/bin:{os.environ['PATH']}"}

    def ask(self, *arguments: object) -> dict:
        """Runs a subcommand of the system's program; returns its result."""
        return process.call_json([*self.program, *map(str, arguments)], self.env(), CALL_MAX_S)

    def unfinished_sql(self) -> str:
        return self.system.unfinished.format(jobs=self.jobs)

    def unfinished(self) -> int:
        if not self.on_sqlite:
            return int(self.server.sql(self.unfinished_sql(), self.database))
        # Read-only, because the last connection that closes a file writes its log back, and an observer must not do that.
        connection = sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=5)
        try:
            return connection.execute(self.unfinished_sql()).fetchone()[0]
        finally:
            connection.close()

    # Throughput

    def own_throughput(self, jobs: int) -> dict:
        """Runs the benchmark command of the system itself."""
        if self.system.own_bench == "milepost":
            text = process.call([str(self.own), "bench", "jobs", "--store", self.url, "--jobs", str(jobs), "--json"], self.env(), CALL_MAX_S)
            found = json.loads(text.strip().splitlines()[-1])
            figures = {"jobs": found["jobs"], "enqueued_per_s": found["enqueue_per_s"], "run_per_s": found["run_per_s"]}
            # The command creates the schema, which would count as WAL of the jobs; it reads the same position of the log after that.
            return figures if self.on_sqlite else {**figures, "wal_bytes": found["wal_bytes_per_job"]}
        text = process.call([str(self.own), "bench", "-n", str(jobs), "--skip-vacuum"], self.env(), CALL_MAX_S)
        return river_figures(text)

    def steps(self, jobs: int) -> dict:
        """Enqueues, then runs; returns the two rates."""
        enqueued = self.ask("enqueue", jobs)
        ran = self.ask("drain", jobs)
        return {"jobs": ran["jobs"], "enqueued_per_s": jobs / enqueued["seconds"], "run_per_s": jobs / ran["seconds"]}

    def throughput(self, sizes: Sizes) -> dict:
        jobs = self.jobs = sizes.jobs
        # `milepost bench` creates the schema itself, and accepts only an empty database.
        self.fresh(setup=self.system.own_bench != "milepost")
        cpu, logged = process.busy_seconds(), self.wal()
        found = self.own_throughput(jobs) if self.system.own_bench else self.steps(jobs)
        cpu, logged_after = process.busy_seconds() - cpu, self.wal()
        if found["jobs"] != jobs:
            raise RuntimeError(f"{found['jobs']} of {jobs} jobs ran")
        if self.unfinished():
            raise RuntimeError(f"{self.unfinished()} of {jobs} jobs have not ended")
        found["cpu_s_per_1000"] = cpu * 1000 / jobs
        if not self.on_sqlite:
            found.setdefault("wal_bytes", (logged_after - logged) / jobs)
            # Sessions report their statistics at their end; a vacuum that runs now belongs to the result.
            time.sleep(1)
            found["dead_tuples"] = self.server.dead_tuples(self.database)
            found["disk_bytes"] = self.server.database_bytes(self.database) / jobs
        return found

    def wal(self) -> int:
        return 0 if self.on_sqlite else self.server.wal_bytes()

    # With a worker

    def worker(self, ms: int) -> process.Worker:
        return process.Worker([*self.program, "work", str(self.log), str(ms)], self.env(), self.folder / "worker.errors")

    def starts(self) -> tuple:
        return stats.starts(self.log.read_text().splitlines()) if self.log.exists() else ({}, [])

    def latency(self, sizes: Sizes) -> dict:
        self.fresh()
        worker = self.worker(0)
        try:
            time.sleep(3)
            worker.check()
            sent = self.ask("send", sizes.rate, sizes.latency_s)["jobs"]
            deadline = time.monotonic() + 30
            while len(self.starts()[0]) < sent and time.monotonic() < deadline:
                time.sleep(0.1)
            counts, latencies = self.starts()
        finally:
            worker.stop()
        if len(counts) != sent:
            raise RuntimeError(f"{len(counts)} of {sent} jobs started")
        return {"latency_p50_ms": stats.percentile(latencies, 0.5), "latency_p99_ms": stats.percentile(latencies, 0.99)}

    def crash(self, sizes: Sizes) -> dict:
        """Kills the worker when half of the jobs have started, and starts it again a second later."""
        jobs = self.jobs = sizes.crash_jobs
        self.fresh()
        self.ask("enqueue", jobs)
        worker = self.worker(CRASH_JOB_MS)
        try:
            self.await_starts(worker, jobs // 2, 120)
            worker.kill()
            killed_at = time.monotonic()
            time.sleep(1)
            worker = self.worker(CRASH_JOB_MS)
            recovered = self.await_end(worker, jobs, killed_at + sizes.crash_wait_s)
            seconds = time.monotonic() - killed_at
        finally:
            worker.stop()
        found = stats.crash_figures(self.log.read_text().splitlines(), jobs, self.unfinished())
        return {**found, "recovery_s": seconds} if recovered else {**found, "not_recovered_after_s": sizes.crash_wait_s}

    def await_starts(self, worker: process.Worker, count: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while len(self.starts()[0]) < count:
            worker.check()
            if time.monotonic() > deadline:
                raise RuntimeError(f"fewer than {count} jobs started within {seconds:.0f} s")
            time.sleep(0.01)

    def await_end(self, worker: process.Worker, jobs: int, deadline: float) -> bool:
        """Waits until the handler of every job has reached its end; returns false if some have not at the deadline."""
        # The log decides, not a query of ours: a query that misses a state of a system would report its jobs as lost.
        while time.monotonic() < deadline:
            worker.check()
            if len(stats.ends(self.log.read_text().splitlines())) >= jobs:
                return True
            time.sleep(0.1)
        return False

    def idle(self, sizes: Sizes) -> dict:
        self.fresh()
        worker = self.worker(0)
        try:
            # Longer than the start, so that only the steady state is measured.
            time.sleep(5)
            worker.check()
            cpu, _ = process.used(worker.process.pid)
            before = self.transactions()
            began = time.monotonic()
            time.sleep(sizes.idle_s)
            seconds = time.monotonic() - began
            cpu_after, resident = process.used(worker.process.pid)
            after = self.transactions()
        finally:
            worker.stop()
        found = {"idle_cpu_percent": (cpu_after - cpu) / seconds * 100, "idle_rss_mb": resident / 2**20}
        if not self.on_sqlite:
            found["idle_transactions_per_s"] = (after - before) / seconds
        return found

    def transactions(self) -> int:
        return 0 if self.on_sqlite else self.server.transactions(self.database)

    def figure(self, name: str, sizes: Sizes) -> dict:
        """Measures one figure."""
        return {LATENCY: self.latency, CRASH: self.crash, IDLE: self.idle}.get(name, self.throughput)(sizes)


def river_figures(text: str) -> dict:
    """Returns the jobs and the rate of running from the summary of `riverqueue bench`, which does not report the rate of insertion."""
    found = re.search(r"total jobs worked \[\s*(\d+) \].*overall job/sec \[\s*([\d.]+) \]", text)
    if not found:
        raise RuntimeError(f"riverqueue bench printed no summary: {text[-300:]}")
    return {"jobs": int(found[1]), "run_per_s": float(found[2])}
