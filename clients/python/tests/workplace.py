"""Base class of tests that create and run jobs in a queue of the server at MILEPOST_URL."""

import faulthandler
import os
import threading
import time
import unittest
import uuid

from milepost import Client, NewJob, Worker

URL = os.environ["MILEPOST_URL"]
LIMIT_S = float(os.environ.get("MILEPOST_TEST_LIMIT_S", "120"))  # How long a test waits for a state.

# Tests that hang print where they wait.
faulthandler.dump_traceback_later(540, exit=True)


def until(what, ask, seconds=LIMIT_S):
    began = time.monotonic()
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() - began < seconds, f"timed out waiting until: {what}"
        time.sleep(0.02)


class Workplace(unittest.TestCase):
    """A test case. `client` is used by the worker, `healthy` by the test itself."""

    def setUp(self):
        self.healthy = self.client = Client(URL)
        self.addCleanup(self.healthy.close)
        self.queue = str(uuid.uuid4())

    def run_worker(self, handlers, **options):
        # So long that no running worker loses its lease, even on a slow machine.
        worker = Worker(self.client, handlers, **{"queues": [self.queue], "lease_s": 60.0, "wait_s": 0.3, **options})
        thread = threading.Thread(target=worker.run, daemon=True)  # A daemon, so that a hanging worker fails only its test.
        thread.start()

        def leave():
            worker.stop()
            thread.join(120)
            self.assertFalse(thread.is_alive(), "the worker stops when its jobs have ended")

        self.addCleanup(leave)
        return worker, thread

    def create(self, kind="k", payload=None, **more):
        return self.healthy.create(NewJob(kind, payload, queue=self.queue, **more)).id

    def ended(self, job, state="succeeded"):
        return until(state, lambda: (view := self.healthy.job(job))["state"] == state and view)

    def attempts(self, job):
        return [attempt.get("error_code") for attempt in self.healthy.ask("GET", f"/v1/jobs/{job}/attempts")]
