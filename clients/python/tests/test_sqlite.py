"""Tests of milepost.sqlite with the program MILEPOST_PROGRAM (by default `milepost` in PATH)."""

import os
import tempfile
import threading
import unittest
from pathlib import Path

import milepost.sqlite
from milepost import NewJob, Unreachable, Worker
from milepost.sqlite import NotServed

PROGRAM = os.environ.get("MILEPOST_PROGRAM", "milepost")


class SqliteTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name, "a store.db")

    def test_a_server_runs_for_as_long_as_it_is_used(self):
        with milepost.sqlite.serve(self.file, program=PROGRAM) as client:
            worker = Worker(client, {"double": lambda job: 2 * job.payload})
            thread = threading.Thread(target=worker.run)
            thread.start()
            job = client.create(NewJob("double", 21)).id
            self.assertEqual(client.wait(job, 60)["result"], 42)
            worker.stop()
            thread.join()
        with self.assertRaises(Unreachable):
            client.ask("GET", "/v1/jobs")
        with milepost.sqlite.serve(self.file, program=PROGRAM) as client:
            self.assertEqual(client.job(job)["result"], 42)

    def test_a_server_that_does_not_start_is_reported_with_its_output(self):
        with self.assertRaisesRegex(NotServed, "cannot be started: .*; install milepost, or pass its path"):
            milepost.sqlite.serve(self.file, program="no-such-program").__enter__()
        self.file.write_text("no database")
        with self.assertRaisesRegex(NotServed, "error: "):
            milepost.sqlite.serve(self.file, program=PROGRAM).__enter__()


if __name__ == "__main__":
    unittest.main()
