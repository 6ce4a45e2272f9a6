"""Where jobs are created and run: a queue of the server whose address is in MILEPOST_URL."""

import faulthandler
import os
import threading
import time
import unittest
import uuid

from milepost import Client, NewJob, Worker

URL = os.environ["MILEPOST_URL"]

# Tests that do not end say where they wait.
faulthandler.dump_traceback_later(540, exit=True)


def until(what, ask, seconds=120.0):
    began = time.monotonic()
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() - began < seconds, f"waited in vain until {what}"
        time.sleep(0.02)


class Workplace(unittest.TestCase):
    """`client` is the worker's, `healthy` the test's own."""

    def setUp(self):
        self.healthy = self.client = Client(URL)
        self.addCleanup(self.healthy.close)
        self.queue = str(uuid.uuid4())

    def run_worker(self, handlers, **options):
        # Nobody who lives loses this lease, however slow the machine is.
        worker = Worker(self.client, handlers, **{"queues": [self.queue], "lease_s": 60.0, "wait_s": 0.3, **options})
        thread = threading.Thread(target=worker.run, daemon=True)  # One that hangs fails its test, and no more.
        thread.start()

        def leave():
            worker.stop()
            thread.join(120)
            self.assertFalse(thread.is_alive(), "it leaves when its jobs have ended")

        self.addCleanup(leave)

    def create(self, kind="k", payload=None, **more):
        return self.healthy.create(NewJob(kind, payload, queue=self.queue, **more)).id

    def ended(self, job, state="succeeded"):
        return until(state, lambda: (view := self.healthy.job(job))["state"] == state and view)

    def attempts(self, job):
        return [attempt.get("error_code") for attempt in self.healthy.ask("GET", f"/v1/jobs/{job}/attempts")]
