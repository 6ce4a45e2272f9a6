"""A client or a worker of an experiment that uses the HTTP API, until its standard input is closed. `milepost-chaos` starts it.

    load.py client|worker --url URL... --folder FOLDER --name NAME --seed SEED [--store-name NAME] [--boot-ns NS]

It records what it asks for and what its handlers do in the form of the other processes (`crates/chaos/src/witness.rs`).
"""

import argparse
import json
import logging
import os
import random
import sys
import threading
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "clients" / "python"))

from milepost import Client, Failed, NewJob, Problem, Unreachable, Worker

# As in the load of the other processes (`crates/chaos/src/load/setup.rs`).
QUEUE, KINDS, KIND, GROUPS = "chaos", ("chaos.effect", "chaos.plain", "chaos.flaky", "chaos.rated"), "chaos.http", ("one", "two", "three")
LEASE_S = 2.0
KEYS, AGGREGATES, TIMEOUT_MS = 500, 20, 10_000
PAUSE_S, HANDLER_S, REPEATED_S = 0.06, 0.04, 2.0
# One handler in this number fails; one repeated attempt takes long, so that a worker that had lost its runs meets the next ones.
FAILS_IN, LONG_IN = 10, 6


class Witness:
    """A file that no fault touches. Each entry is one write, so that a killed process loses none."""

    def __init__(self, folder, name, store_name, boot_ns):
        self._file = os.open(Path(folder) / f"{name}.jsonl", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._name, self._boot_ns, self._lock, self._operations = name, boot_ns, threading.Lock(), 0
        self._store = {"store": store_name} if store_name else {}

    def now_ns(self):
        return time.time_ns() if self._boot_ns is None else self._boot_ns + time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def now_ms(self):
        return self.now_ns() // 1_000_000

    def saw(self, effect, job):
        token = int(job.run.split(".")[1])
        self._write({"line": "effect", "effect": effect, "job": job.id, "token": token, "at_ms": self.now_ms()})

    def call(self, what, ask):
        """Makes a call, and records it with its outcome. `what`: describes it, given its answer. Returns the outcome and the answer."""
        with self._lock:
            self._operations += 1
            number = self._operations
        begun = {"line": "operation", "number": number, "client": self._name, "began_ms": self.now_ms(), **self._store}
        self._write({**begun, "outcome": "unknown", **what(None)})
        answer = None
        try:
            answer, outcome = ask(), "ok"
        except Unreachable:
            outcome = "unknown"
        except Problem as problem:
            outcome = "unknown" if problem.status >= 500 else "failed"
        self._write({**begun, "ended_ms": self.now_ms(), "outcome": outcome, **what(answer)})
        return outcome, answer

    def _write(self, entry):
        os.write(self._file, json.dumps({"at_ns": self.now_ns(), **entry}).encode() + b"\n")


class Caller:
    """Calls one of the servers at a time. A call without an answer is repeated, at any of them."""

    def __init__(self, urls, witness, name, seed):
        self._clients = [Client(url, timeout_s=10.0) for url in urls]
        self._witness, self._name, self._random = witness, name, random.Random(seed)
        self._jobs, self._calls = [], 0

    def call(self):
        chosen = self._random.randrange(100)
        (self._create if chosen < 50 else self._emit if chosen < 80 else self._operate)()
        time.sleep(self._random.random() * PAUSE_S)

    def _ask(self, *request, **more):
        return self._random.choice(self._clients).ask(*request, **more)

    def _until_known(self, what, ask):
        outcome = "unknown"
        while outcome == "unknown":
            outcome, answer = self._witness.call(what, ask)
            if outcome == "unknown":
                time.sleep(0.1)
        return answer

    def _create(self):
        """Creates up to three jobs. Each has a key: its own, or that of the request."""
        request = str(uuid.UUID(int=self._random.getrandbits(128)))
        jobs = [self._job() for _ in range(self._random.randrange(1, 4))]
        keys = [job.key or f"idempotency:{request}:{index}" for index, job in enumerate(jobs)]

        def what(answer):
            ids = [created["id"] for created in answer["jobs"]] if answer else [None] * len(jobs)
            asked = [{"id": "unknown", "kind": job.kind, "key": key, "answer": id} for job, key, id in zip(jobs, keys, ids)]
            return {"operation": "enqueue", "jobs": asked}

        body = {"jobs": [job.as_json() for job in jobs]}
        answer = self._until_known(what, lambda: self._ask("POST", "/v1/jobs/create-many", body, headers={"Idempotency-Key": request}))
        self._jobs += [created["id"] for created in answer["jobs"]] if answer else []

    def _job(self):
        kind = self._random.choice((*KINDS, KIND, KIND, KIND, KIND))
        key = str(self._random.randrange(KEYS)) if self._random.randrange(4) == 0 else None
        group = self._random.choice(GROUPS) if self._random.randrange(4) == 0 else None
        return NewJob(kind, self._random.randrange(1 << 40), queue=QUEUE, key=key, group=group, timeout_ms=TIMEOUT_MS)

    def _emit(self):
        event, order = str(uuid.UUID(int=self._random.getrandbits(128))), str(self._random.randrange(AGGREGATES))
        payload = self._random.randrange(1 << 40)
        request = {"aggregate_type": "order", "aggregate_id": order, "event_type": "order.changed", "payload": payload, "event_id": event}
        emit = {"operation": "emit", "event": event, "aggregate": f"order/{order}", "payload": str(payload)}
        self._until_known(lambda _: emit, lambda: self._ask("POST", "/v1/events", {"events": [request]}))

    def _operate(self):
        """Operates on one of its jobs, once: an operator who gets no answer looks first."""
        if not self._jobs:
            return
        self._calls += 1
        job, mark = self._random.choice(self._jobs), f"{self._name} {self._calls}"
        body = {"operation": self._random.choice(("cancel", "retry", "rerun", "snooze")), "delay_ms": 200, "reason": mark}
        if body["operation"] != "snooze":
            del body["delay_ms"]
        act = {"operation": "act", "mark": mark, "changed": True, **({"revived": job} if body["operation"] == "rerun" else {})}
        self._witness.call(lambda _: act, lambda: self._ask("POST", f"/v1/jobs/{job}/operate", body))


def handler(witness, random):
    def handle(job):
        witness.saw("began", job)
        takes_long = job.attempt > 1 and random.randrange(LONG_IN) == 0
        time.sleep(random.random() * (REPEATED_S if takes_long else HANDLER_S))
        witness.saw("finished", job)
        if random.randrange(FAILS_IN) == 0:
            raise Failed("this attempt fails on purpose", "chaos", delay_s=0.1)

    return handle


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("client", "worker"))
    parser.add_argument("--url", action="append", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--store-name")
    parser.add_argument("--boot-ns", type=int)
    args = parser.parse_args()
    # Faults make many calls fail.
    logging.getLogger("milepost").disabled = True
    witness = Witness(args.folder, args.name, args.store_name, args.boot_ns)
    asked_to_end = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), asked_to_end.set()), daemon=True).start()
    if args.role == "client":
        caller = Caller(args.url, witness, args.name, args.seed)
        while not asked_to_end.is_set():
            caller.call()
        return
    handlers = {KIND: handler(witness, random.Random(args.seed))}
    worker = Worker(Client(args.url[0]), handlers, queues=[QUEUE], lease_s=LEASE_S, wait_s=1.0, name=args.name)
    threading.Thread(target=lambda: (asked_to_end.wait(), worker.stop()), daemon=True).start()
    worker.run()


main()
