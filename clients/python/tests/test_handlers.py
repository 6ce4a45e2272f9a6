"""Tests of registered handlers in threads, child processes and event loops, against the real server at MILEPOST_URL."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from unittest import mock

from milepost import AsyncClient, AsyncWorker, Client, Handlers, Job, NewEvent, NewJob, Problem, Worker, testing
from milepost.payloads import convert, dumps
from tests import deeds
from tests.ill import IllServer
from tests.workplace import URL, Workplace, until

ORDER = deeds.Order(uuid.uuid4(), datetime.now(timezone.utc), [deeds.Item("tea", Decimal("1.20"))], deeds.Color.RED, {"tea": 1.0})


class HandlersTest(Workplace):
    def of(self, handler, payload=None, **options):
        return self.healthy.create(handler.job(payload, queue=self.queue, **options)).id

    def test_a_payload_and_a_result_are_dataclasses(self):
        self.run_worker(deeds.handlers)
        job = self.of(deeds.order, ORDER)
        view = self.ended(job)
        self.assertEqual((view["priority"], view["max_attempts"], view["result"]), (1, 1, view["payload"]))
        self.assertEqual(convert(deeds.Order, view["result"]), ORDER)

    def test_a_payload_that_does_not_fit_fails_the_job_permanently(self):
        self.run_worker(deeds.handlers)
        with self.assertLogs("milepost") as logged:
            job = self.of(deeds.order, {"id": str(ORDER.id), "at": "today", "items": []}, max_attempts=25)
            self.ended(job, "failed")
        self.assertEqual(self.attempts(job), ["payload"])
        self.assertIn("the payload does not fit the handler of order: the payload.at is not a datetime: 'today'", "".join(logged.output))

    def test_a_kind_has_one_handler(self):
        handlers = Handlers()
        handlers.handler("k")(lambda job: None)
        with self.assertRaisesRegex(ValueError, "the kind 'k' has a handler: tests.test_handlers"):
            handlers.handler("k")(lambda job: None)

    def test_a_handler_is_a_function_for_tests(self):
        made = testing.job({"id": str(ORDER.id), "at": "2026-11-22T10:00:00+00:00", "items": [{"name": "tea", "price": 1}]})
        self.assertEqual(deeds.order(made).items, [deeds.Item("tea", Decimal(1))])
        made.report(1, 2, checkpoint={"n": 1})
        made.check()

    def test_async_handlers_run_at_the_same_time_and_are_interrupted(self):
        self.run_worker(deeds.handlers, concurrency=200, lease_s=6.0)
        forever, exits = self.of(deeds.forever), self.of(deeds.exits)
        jobs = [self.of(deeds.twice, n) for n in range(20)]
        self.assertEqual([self.ended(job)["result"] for job in jobs], [2 * n for n in range(20)])
        self.ended(exits, "failed")
        self.assertEqual(self.attempts(exits), ["SystemExit"])
        self.healthy.cancel(forever, grace_ms=60_000)
        self.ended(forever, "canceled")
        late = self.of(deeds.forever, timeout_ms=300)
        self.ended(late, "failed")
        self.assertEqual(self.attempts(late), ["timeout"])

    def test_an_idle_worker_stops_immediately(self):
        worker, thread = self.run_worker({"k": lambda job: None}, wait_s=30.0)
        self.ended(self.create())
        began = time.monotonic()
        worker.stop()
        thread.join(30)
        self.assertLess(time.monotonic() - began, 3.0)

    def test_a_job_that_is_claimed_while_the_worker_stops_is_handed_back(self):
        ill = IllServer(URL)
        self.addCleanup(ill.close)
        self.client = Client(ill.url)
        self.addCleanup(self.client.close)
        answers, let_go = threading.Event(), threading.Event()
        self.addCleanup(let_go.set)
        ill.delays = lambda path: path.endswith("/claim") and (answers.set(), let_go.wait(60))
        job, ran = self.create(max_attempts=1), []
        worker, thread = self.run_worker({"k": ran.append})
        self.assertTrue(answers.wait(60), "the claim is answered, but the answer does not arrive")
        worker.stop()
        thread.join(60)
        self.assertEqual((ran, self.healthy.job(job)["state"]), ([], "pending"))
        self.client = self.healthy
        self.run_worker({"k": lambda job: job.attempt})
        self.assertEqual(self.ended(job)["result"], 1)


    def test_no_job_is_claimed_before_the_worker_deregisters(self):
        ask, tokens = self.client.ask, []

        def create_before(method, *given, **named):
            if method == "DELETE":
                job = self.create()
                time.sleep(0.5)  # Time in which a claim that is still pending would get the job.
                tokens.append(self.healthy.job(job)["token"])
            return ask(method, *given, **named)

        worker, thread = self.run_worker({"k": lambda job: None}, wait_s=30.0)
        self.ended(self.create())
        with mock.patch.object(self.client, "ask", create_before):
            worker.stop()
            thread.join(30)
        self.assertEqual(tokens, [0])

    def test_jobs_that_are_created_while_a_worker_stops_are_not_lost(self):
        created, over = [], threading.Event()

        def create():
            while not over.is_set():
                created.append(self.create(max_attempts=1))

        creating = threading.Thread(target=create)
        creating.start()
        for _ in range(5):
            worker, thread = self.run_worker({"k": lambda job: None}, wait_s=30.0)
            count = len(created)
            until("jobs are created", lambda: len(created) > count + 10)
            worker.stop()
            thread.join(30)
        over.set()
        creating.join()
        self.run_worker({"k": lambda job: None}, concurrency=50)
        for job in created:
            self.ended(job)


class ProcessesTest(Workplace):
    of = HandlersTest.of

    def test_handlers_run_in_child_processes(self):
        self.run_worker(deeds.handlers, processes=True, initializer=deeds.prepare, concurrency=2)
        results = [self.ended(job)["result"] for job in [self.of(deeds.process) for _ in range(3)]]
        self.assertEqual({(one["row"], one["prepared"]) for one in results}, {(17, "yes")})
        self.assertNotIn(os.getpid(), {one["process"] for one in results})
        self.assertEqual(self.ended(self.of(deeds.twice, 4))["result"], 8)
        self.ended(self.of(deeds.order, {}), "failed")

    def test_a_process_that_dies_fails_its_attempt(self):
        self.run_worker(deeds.handlers, processes=True)
        job = self.of(deeds.crash)
        self.ended(job, "failed")
        self.assertEqual(self.attempts(job), ["process_died"])

    def test_a_process_that_dies_is_noticed_while_one_that_it_forked_lives(self):
        self.run_worker(deeds.handlers, processes=True)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "process")
            job = self.of(deeds.orphan, str(file))
            self.ended(job, "failed")
            self.assertEqual(self.attempts(job), ["process_died"])
            os.kill(int(file.read_text()), signal.SIGKILL)  # Fails if the process has ended.

    def test_a_process_that_hangs_is_killed_after_its_time_limit(self):
        self.run_worker(deeds.handlers, processes=True, concurrency=1)
        with tempfile.TemporaryDirectory() as folder, mock.patch("milepost.processes.KILL_AFTER_S", 0.5):
            file = Path(folder, "process")
            job = self.of(deeds.hang, str(file), timeout_ms=3000)
            self.ended(job, "failed")
            self.assertEqual(self.attempts(job), ["timeout"])
            until("the process is gone", lambda: not Path(f"/proc/{file.read_text()}").exists())
        self.assertEqual(self.ended(self.of(deeds.process))["result"]["row"], 17)

    def test_a_handler_in_a_process_is_asked_to_stop(self):
        self.run_worker(deeds.handlers, processes=True, lease_s=6.0)
        job = self.of(deeds.ask)
        self.ended(job, "running")
        self.healthy.cancel(job, grace_ms=60_000)
        self.ended(job, "canceled")

    def start_worker(self, folder):
        """Starts a program with a worker in a session of its own."""
        program = f"""
from milepost import Client, Worker
from tests.deeds import handlers
if __name__ == "__main__":
    Worker(Client("{URL}"), handlers, queues=["{self.queue}"], processes=True, lease_s=60.0, wait_s=30.0).run(handle_signals=True)
"""
        file = Path(folder, "worker.py")
        file.write_text(program)
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        return subprocess.Popen([sys.executable, file], env=environment, stderr=subprocess.DEVNULL, start_new_session=True)

    def test_jobs_end_after_a_signal_to_all_processes_of_a_worker(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "waits")
            file.touch()
            child = self.start_worker(folder)
            job = self.of(deeds.wait, str(file))
            until("the handler runs", lambda: self.healthy.job(job)["progress"])
            os.killpg(child.pid, signal.SIGTERM)
            # A killed handler would be reported first: the worker waits for nothing else.
            time.sleep(0.2)
            file.unlink()
            self.ended(job)
            self.assertEqual(child.wait(60), 0)

    def test_a_worker_stops_after_a_signal_and_leaves_no_process(self):
        with tempfile.TemporaryDirectory() as folder:
            child = self.start_worker(folder)
            process = self.ended(self.of(deeds.process))["result"]["process"]
            child.send_signal(signal.SIGTERM)
            self.assertEqual(child.wait(60), 0)
            self.assertFalse(Path(f"/proc/{process}").exists())


class AsyncTest(Workplace):
    def run_async(self, deed):
        async def run():
            async with AsyncClient(URL) as client:
                return await deed(client)

        return asyncio.run(run())

    def test_a_client_has_the_methods_of_the_other(self):
        async def deed(client):
            [created] = await client.create_many([NewJob("k", 1, queue=self.queue)])
            other = await client.create(NewJob("k", queue=self.queue))
            listed = [job["id"] async for job in client.jobs(queue=self.queue)]
            emitted = [await client.emit(NewEvent("order", self.queue, "t")), *await client.emit_many([NewEvent("order", self.queue, "t")])]
            with self.assertRaises(TimeoutError):
                await client.wait(other.id, 0.2)
            states = [await client.cancel(other.id), (await client.wait(other.id, 10))["state"], (await client.job(created.id))["state"]]
            with self.assertRaises(Problem):
                await client.start_bulk(self.queue)
            with self.assertRaises(Problem):
                await client.start_batch(self.queue)
            return listed, [other.id, created.id], [one.aggregate_seq for one in emitted], states

        listed, created, sequences, states = self.run_async(deed)
        self.assertEqual((listed, sequences, states), (created, [1, 2], ["canceled", "canceled", "pending"]))

    def test_a_worker_runs_async_handlers_in_the_loop_of_its_caller(self):
        async def deed(client):
            loops = []

            async def handler(job):
                loops.append(asyncio.get_running_loop())
                return job.payload

            worker = AsyncWorker(client, {"k": handler, "thread": lambda job: threading.get_ident()}, queues=[self.queue], wait_s=30.0)
            running = asyncio.create_task(worker.run())
            created = [await client.create(NewJob(kind, 1, queue=self.queue)) for kind in ("k", "thread")]
            first, second = [(await client.wait(job.id, 60))["result"] for job in created]
            worker.stop()
            await running
            return first, second != threading.get_ident(), loops == [asyncio.get_running_loop()]

        self.assertEqual(self.run_async(deed), (1, True, True))

    def test_a_worker_whose_task_is_cancelled_ends_its_jobs(self):
        async def deed(client):
            begun, go_on = asyncio.Event(), asyncio.Event()

            async def handler(job):
                begun.set()
                await go_on.wait()
                return "done"

            running = asyncio.create_task(AsyncWorker(client, {"k": handler}, queues=[self.queue], wait_s=30.0).run())
            job = await client.create(NewJob("k", queue=self.queue))
            await begun.wait()
            running.cancel()
            go_on.set()
            with self.assertRaises(asyncio.CancelledError):
                await running
            return (await client.job(job.id))["result"]

        self.assertEqual(self.run_async(deed), "done")


class PayloadsTest(unittest.TestCase):
    def test_faults_have_their_place(self):
        order = {"id": str(ORDER.id), "at": "2026-11-22T10:00:00+00:00", "items": [{"name": "tea", "price": 1}]}
        faults = {
            "the payload must be Order, and is list": [],
            "the payload has no member 'at'": {"id": str(ORDER.id), "items": []},
            "the payload has the unknown member 'x'": {**order, "x": 1},
            "the payload.items[0].name must be str, and is int": {**order, "items": [{"name": 1, "price": 1}]},
            "the payload.items[0].price is not a Decimal: 'x'": {**order, "items": [{"name": "tea", "price": "x"}]},
            "the payload.color is not a Color: 'blue'": {**order, "color": "blue"},
            "the payload.weights.tea must be float, and is bool": {**order, "weights": {"tea": True}},
        }
        for words, payload in faults.items():
            with self.assertRaises(ValueError) as fault:
                convert(deeds.Order, payload)
            self.assertEqual(str(fault.exception), words)

    def test_pydantic_models_are_payloads(self):
        try:
            from pydantic import BaseModel
        except ImportError:
            self.skipTest("pydantic is not installed")

        class Mail(BaseModel):
            to: str
            at: datetime

        mail = Mail(to="ada", at=ORDER.at)

        self.assertEqual(convert(Mail, json.loads(dumps(mail))), mail)
        with self.assertRaisesRegex(ValueError, "Field required"):
            convert(Mail, {"to": "ada"})


if __name__ == "__main__":
    unittest.main()
