"""Tests of milepost.django with the Django project in tests/project, on PostgreSQL. The server at MILEPOST_URL has the store at
MILEPOST_TEST_POSTGRES; MILEPOST_PROGRAM is the program `milepost` (by default the one in PATH)."""

import contextlib
import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from milepost import NewJob
from tests.workplace import Workplace, until

PROJECT = Path(__file__).parent / "project"
PROGRAM = os.environ.get("MILEPOST_PROGRAM", "milepost")
PACKAGES = str(Path(__file__).parent.parent)


class DjangoTest(Workplace):
    def setUp(self):
        super().setUp()
        path = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PYTHONPATH": PACKAGES, "PATH": path, "SHOP_QUEUE": self.queue, "PYTHONWARNINGS": "error"}

    def manage(self, *arguments):
        command = [sys.executable, "manage.py", *arguments]
        ran = subprocess.run(command, cwd=PROJECT, env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.strip(), ran.stderr

    def shell(self, *lines):
        """Runs lines in the project, and returns what they print."""
        program = "import django; django.setup()\n" + "\n".join(lines)
        environment = {**self.environment, "DJANGO_SETTINGS_MODULE": "shop.settings"}
        ran = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.strip()

    @contextlib.contextmanager
    def worker(self, *options):
        command = [sys.executable, "manage.py", "milepost_worker", *options]
        worker = subprocess.Popen(command, cwd=PROJECT, env=self.environment, stderr=subprocess.PIPE, text=True)
        try:
            yield worker
            worker.send_signal(signal.SIGTERM)
            log = worker.communicate(timeout=60)[1]
            self.assertEqual(worker.returncode, 0, log)
            self.assertIn("has stopped", log)
            self.assertNotIn("ResourceWarning", log)
        finally:
            worker.kill()
            worker.wait()

    def test_the_tests_of_the_project_pass(self):
        _, printed = self.manage("test", "--noinput")
        self.assertIn("Ran 8 tests", printed)

    def test_the_worker_runs_the_jobs_of_committed_transactions(self):
        self.manage("milepost_migrate")
        self.manage("migrate")
        for options in ([], ["--processes"]):
            with self.worker("--concurrency", "2", *options):
                order, job = self.shell(
                    "from django.db import transaction", "from orders.models import Order", "from orders.milepost_jobs import Bill, bill",
                    "from milepost.django import enqueue",
                    "with transaction.atomic():", "    order = Order.objects.create(email='ada@example.org')",
                    f"    print(order.pk, enqueue(bill.job(Bill(order.pk), queue='{self.queue}')).id)",
                ).split()
                result = self.ended(job)["result"]
                invoices = self.shell("from orders.models import Invoice", f"print(*Invoice.objects.filter(order={order}).values_list('pk', flat=True))")
                self.assertEqual((result, self.attempts(job)), ({"invoice": int(invoices)}, ["RuntimeError", None]))
                counted = self.healthy.create(NewJob("count", f"{self.queue}@example.org", queue=self.queue)).id
                self.assertEqual(self.ended(counted)["result"], 0)

    def test_the_worker_leaves_no_connections_behind(self):
        is_open = "cursor.execute('select count(*) from pg_stat_activity where pid = any(%s)', [{0}]); print(cursor.fetchone()[0])"
        with self.worker():
            jobs = [self.create("server_process") for _ in range(8)]
            processes = [self.ended(job)["result"] for job in jobs]
            count = lambda: self.shell("from django.db import connection", "cursor = connection.cursor()", is_open.format(processes))
            until("the connections are closed", lambda: count() == "0")


if __name__ == "__main__":
    unittest.main()
