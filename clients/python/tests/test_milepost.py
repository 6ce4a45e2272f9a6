"""Tests of the client against the real server at MILEPOST_URL."""

import threading
import time
import unittest
import uuid
from datetime import datetime, timezone

from milepost import Backoff, Client, Failed, NewJob, Problem, Snooze, Unreachable, Worker
from tests.workplace import URL, Workplace


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.client = Client(URL)
        self.addCleanup(self.client.close)

    def test_a_job_is_created_once_under_its_key(self):
        key = str(uuid.uuid4())
        first = self.client.create(NewJob("mail", {"to": "ada"}, key=key))
        again = self.client.create(NewJob("mail", {"to": "ada"}, key=key))
        self.assertEqual((again.id, first.duplicate, again.duplicate), (first.id, False, True))
        self.assertEqual(self.client.job(first.id)["payload"], {"to": "ada"})

    def test_many_jobs_are_created_and_listed(self):
        kind = str(uuid.uuid4())
        created = self.client.create_many([NewJob(kind, n) for n in range(120)])
        listed = {job["id"] for job in self.client.jobs(kind=kind)}
        self.assertEqual(listed, {job.id for job in created})

    def test_a_batch_is_started_once_under_its_key_and_for_its_day(self):
        dag, key = str(uuid.uuid4()), str(uuid.uuid4())
        tasks = {"a": {"kind": dag, "payload": "${ input.n } on ${ tick.date }"}}
        self.client.ask("POST", "/v1/dags", {"name": dag, "tasks": tasks})
        day = {"key": key, "nominal_at": "2026-11-21T23:30:00Z", "nominal_zone": "Europe/Berlin"}
        first, again = (self.client.start_batch(dag, {"n": 7}, **day) for _ in range(2))
        self.assertEqual((again.id, first.duplicate, again.duplicate), (first.id, False, True))
        [job] = self.client.jobs(kind=dag)
        self.assertEqual(self.client.job(job["id"])["payload"], "7 on 2026-11-22")
        self.assertNotEqual(self.client.start_batch(dag, {"n": 8}, nominal_at=day["nominal_at"]).id, first.id)

    def test_a_refusal_says_what_and_where(self):
        with self.assertRaises(Problem) as refused:
            self.client.create(NewJob("", 1))
        self.assertEqual((refused.exception.status, refused.exception.code), (422, "invalid_job"))
        with self.assertRaises(Unreachable):
            Client("http://127.0.0.1:9").ask("GET", "/v1/jobs")
        with self.assertRaises(ValueError):
            Client("127.0.0.1:7070")


class WorkerTest(Workplace):
    def test_handlers_run_jobs_and_their_results_are_kept(self):
        self.run_worker({"double": lambda job: job.payload * 2}, concurrency=8)
        jobs = [self.create("double", n) for n in range(50)]
        for n, job in enumerate(jobs):
            self.assertEqual(self.ended(job)["result"], 2 * n)

    def test_a_failure_is_told_and_tried_again_from_its_checkpoint(self):
        def handler(job):
            if job.checkpoint is None:
                job.report(done=1, total=2, message="half", checkpoint={"row": 17})
                raise Failed("not yet", code="not_yet", delay_s=3600.0)
            return job.checkpoint["row"]

        self.run_worker({"k": handler})
        job = self.create("k")
        self.ended(job, "retry_wait")
        self.client.operate(job, "retry")
        self.assertEqual(self.ended(job)["result"], 17)
        self.assertEqual(self.attempts(job), ["not_yet", None])

    def test_a_kind_has_the_backoff_that_its_worker_states(self):
        def handler(job):
            raise Failed("not yet", delay_s=1.0)

        two_hours = Backoff(base_s=7200.0, cap_s=7200.0, jitter=0.0)  # Longer than the default, which is at most an hour.
        self.run_worker({"slow": handler, "usual": handler}, backoffs={"slow": two_hours})
        began = datetime.now(timezone.utc)
        waits = {}
        for kind in ("slow", "usual"):
            ready_at = self.ended(self.create(kind), "retry_wait")["ready_at"]
            waits[kind] = (datetime.fromisoformat(ready_at) - began).total_seconds()
        self.assertGreaterEqual(waits["slow"], 7200.0)
        self.assertLess(waits["usual"], 3600.0)

    def test_a_backoff_that_contradicts_itself_is_refused(self):
        for backoffs, at in (({"k": Backoff(base_s=2.0, cap_s=1.0)}, "backoffs.k"), ({"other": Backoff()}, "backoffs.other")):
            with self.assertRaises(Problem) as refused:
                Worker(Client(URL), {"k": print}, backoffs=backoffs).run()
            self.assertEqual((refused.exception.code, refused.exception.at), ("invalid_backoff", at))

    def test_an_exception_fails_the_attempt_under_its_name(self):
        def handler(job):
            raise ZeroDivisionError("no")

        self.run_worker({"k": handler})
        job = self.create("k", max_attempts=1)
        self.ended(job, "failed")
        self.assertEqual(self.attempts(job), ["ZeroDivisionError"])

    def test_what_snoozes_does_not_spend_an_attempt(self):
        seen = []

        def handler(job):
            seen.append(job.attempt)
            if len(seen) == 1:
                raise Snooze(0.05, "later")

        self.run_worker({"k": handler})
        self.ended(self.create("k", max_attempts=1))
        self.assertEqual(seen, [1, 1])

    def test_a_running_job_is_canceled(self):
        def handler(job):
            while True:
                job.check()
                time.sleep(0.01)

        # Heartbeats, which report the cancel, are sent three times per lease.
        self.run_worker({"k": handler}, lease_s=6.0)
        job = self.create("k")
        self.ended(job, "running")
        self.assertEqual(self.client.operate(job, "cancel", grace_ms=60_000), "stop_requested")
        self.ended(job, "canceled")

    def test_a_result_that_is_no_json_fails_the_attempt(self):
        self.run_worker({"k": lambda job: {1, 2}})
        job = self.create("k", max_attempts=1)
        self.ended(job, "failed")
        self.assertEqual(self.attempts(job), ["end_not_taken"])

    def test_a_result_whose_encoding_raises_any_error_fails_only_its_attempt(self):
        class Evil(Exception):
            def __str__(self):
                raise self

        class Odd(dict):
            def items(self):
                raise [RuntimeError("no items"), KeyError("no"), Evil(), SystemExit(1)][self["n"]]

        over = threading.Event()
        self.addCleanup(over.set)
        self.run_worker({"odd": lambda job: Odd(n=job.payload), "good": lambda job: over.wait(600) and job.attempt}, concurrency=5)
        good = self.create("good")
        for n in range(4):
            job = self.create("odd", n, max_attempts=1)
            self.ended(job, "failed")
            self.assertEqual(self.attempts(job), ["end_not_taken"])
        over.set()
        self.assertEqual(self.ended(good)["result"], 1)

    def test_an_error_with_parts_of_wrong_types_ends_its_attempt(self):
        class Bare(Failed):
            def __init__(self):
                pass

        class Evil(Exception):
            def __str__(self):
                raise self

            __repr__ = __str__

        raised = [
            (lambda: Failed("no", code=404), "404"), (lambda: Failed(None), "failed"), (lambda: Failed("no", code=None), "failed"),
            (lambda: Failed("no", code=""), "failed"), (lambda: Failed("no", code="odd", retryable="no"), "odd"),
            (lambda: Failed("no", code="late", delay_s=1e30), "late"), (lambda: Failed("no", code=Evil()), "Failed"), (Bare, "Bare"),
            (Evil, "Evil"), (lambda: Failed("x" * 17_000_000, code="long" * 1_000_000), "long" * 50), (lambda: Snooze("x"), "ValueError"),
        ]

        def handler(job):
            raise raised[job.payload][0]()

        self.run_worker({"k": handler}, concurrency=8)
        for n, (_, code) in enumerate(raised):
            job = self.create("k", n, max_attempts=1)
            self.ended(job, "failed")
            self.assertEqual(self.attempts(job), [code])

    def test_a_snooze_with_a_delay_or_a_reason_of_another_kind_is_a_snooze(self):
        raised = [Snooze(-1), Snooze(0.05, None), Snooze("0.05", 404)]
        self.assertLessEqual(Snooze(1e30).delay_ms, 2**63)  # The server accepts no longer delay.
        seen = []

        def handler(job):
            seen.append(job.attempt)
            if len(seen) <= len(raised):
                raise raised[len(seen) - 1]

        self.run_worker({"k": handler})
        self.ended(self.create("k", 1, max_attempts=1))
        self.assertEqual(seen, [1] * 4)

    def test_more_places_than_a_claim_can_ask_for_are_used(self):
        self.run_worker({"k": lambda job: None}, concurrency=600)
        self.ended(self.create("k"))


if __name__ == "__main__":
    unittest.main()
