"""Tests of the client against the real server at MILEPOST_URL."""

import logging
import threading
import time
import unittest
import uuid
from datetime import datetime, timedelta, timezone

from milepost import Backoff, Client, Failed, NewJob, Problem, Snooze, Unreachable, Worker
from tests.workplace import URL, Workplace, until


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
        day = {"key": key, "nominal_at": datetime(2026, 11, 21, 23, 30, tzinfo=timezone.utc), "nominal_zone": "Europe/Berlin"}
        first, again = (self.client.start_batch(dag, {"n": 7}, **day) for _ in range(2))
        self.assertEqual((again.id, first.duplicate, again.duplicate), (first.id, False, True))
        [job] = self.client.jobs(kind=dag)
        self.assertEqual(self.client.job(job["id"])["payload"], "7 on 2026-11-22")
        self.assertNotEqual(self.client.start_batch(dag, {"n": 8}, nominal_at=day["nominal_at"]).id, first.id)

    def test_a_signal_ends_a_wait(self):
        dag = str(uuid.uuid4())
        self.client.ask("POST", "/v1/dags", {"name": dag, "tasks": {"ask": {"wait": {"signal": "go"}}}})
        batch = self.client.start_batch(dag).id
        results = [self.client.signal(batch, "go", 7, id="1") for _ in range(2)]
        self.assertEqual(results, ["accepted", "duplicate"])

    def test_times_with_a_zone_are_accepted_and_those_without_are_refused(self):
        start_at = datetime.now(timezone(timedelta(hours=2))).replace(microsecond=0) + timedelta(days=365)
        job = self.client.job(self.client.create(NewJob("k", start_at=start_at)).id)
        self.assertEqual(datetime.fromisoformat(job["ready_at"]), start_at)
        kind, hour = str(uuid.uuid4()), timedelta(hours=1)
        created, now = self.client.create(NewJob(kind)), datetime.now(timezone.utc)
        listed = [list(self.client.jobs(kind=kind, created_from=now + ahead)) for ahead in (-hour, hour)]
        self.assertEqual([[job["id"] for job in jobs] for jobs in listed], [[created.id], []])
        naive = datetime(2999, 12, 31)
        refused = {
            "start_at": lambda: NewJob("k", start_at=naive), "nominal_at": lambda: self.client.start_batch("d", nominal_at=naive),
            "created_before": lambda: list(self.client.jobs(created_before=naive)),
        }
        for name, use in refused.items():
            with self.assertRaisesRegex(ValueError, f"{name} has no time zone: use datetime.now"):
                use()
        for text in ("2999-12-31", "2999-12-31T10:00:00", "2999-12-31 10:00", ""):
            with self.assertRaisesRegex(ValueError, f"start_at has no time zone: '{text}'; append Z"):
                NewJob("k", start_at=text)
        for text in ("2999-12-31T10:00:00Z", "2999-12-31 10:00:00.5+01:00", "2999-12-31T10:00:00-0530"):
            NewJob("k", start_at=text)

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

    def test_a_handler_receives_the_settings_of_its_job(self):
        seen = []
        self.run_worker({"k": seen.append})
        self.ended(id := self.create("k", 1, group=self.queue, max_attempts=3))
        [job] = seen
        self.assertEqual((job.id, job.queue, job.group, job.batch, job.max_attempts, job.nominal_at), (id, self.queue, self.queue, None, 3, None))
        self.assertLess(abs(datetime.now(timezone.utc) - job.created_at), timedelta(minutes=10))
        self.assertEqual(job.run_token, int(job.run.split(".")[1]))

    def test_a_task_receives_its_batch_and_the_nominal_time(self):
        name, seen = str(uuid.uuid4()), []
        self.client.ask("POST", "/v1/dags", {"name": name, "tasks": {"a": {"kind": name, "queue": self.queue}}})
        tick = datetime(2026, 11, 21, 23, 30, tzinfo=timezone.utc)
        batch = self.client.start_batch(name, nominal_at=tick)
        self.run_worker({name: seen.append})
        [job] = until("the task runs", lambda: seen)
        self.assertEqual((job.batch, job.nominal_at), (batch.id, tick))

    def test_the_end_of_a_job_is_waited_for(self):
        self.run_worker({"good": lambda job: "done", "bad": lambda job: 1 / 0})
        self.assertEqual(self.client.wait(self.create("good"), 120)["result"], "done")
        self.assertEqual(self.client.wait(self.create("bad", max_attempts=1), 120)["state"], "failed")
        other = self.create("other")
        with self.assertRaisesRegex(TimeoutError, f"job {other} has not ended within 2.5 s: its state is pending"):
            self.client.wait(other, 2.5)

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

    def test_a_handler_that_catches_each_exception_is_canceled(self):
        def handler(job):
            while True:
                try:
                    job.check()
                except Exception:
                    return "ignored"
                time.sleep(0.01)

        self.run_worker({"k": handler}, lease_s=6.0)
        job = self.create("k")
        self.ended(job, "running")
        self.client.operate(job, "cancel", grace_ms=60_000)
        self.ended(job, "canceled")

    def test_a_handler_that_returns_after_a_request_to_stop_has_succeeded(self):
        self.run_worker({"k": lambda job: until("a stop is requested", lambda: job.stop_requested) and "done"}, lease_s=6.0)
        job = self.create("k")
        self.ended(job, "running")
        self.client.operate(job, "cancel", grace_ms=60_000)
        self.assertEqual(self.ended(job)["result"], "done")

    def test_a_result_that_is_no_json_fails_the_attempt(self):
        with self.assertLogs("milepost") as logged:
            self.run_worker({"k": lambda job: {1, 2}})
            job = self.create("k", max_attempts=1)
            self.ended(job, "failed")
            self.assertEqual(self.attempts(job), ["end_not_taken"])
            line = f"job {job} (k): attempt 1 of 1 failed; no attempt follows: end_not_taken: the result is not JSON: " \
                "TypeError: Object of type set is not JSON serializable"
            until("the reason is logged", lambda: line in [record.getMessage() for record in logged.records])

    def test_a_failed_attempt_is_logged_with_its_message_and_what_follows(self):
        def handler(job):
            raise job.payload and Failed("refused", code="http_403", retryable=False) or RuntimeError("no mail server")

        cases = [
            (None, 2, logging.INFO, "attempt 1 of 2 failed; another attempt follows: RuntimeError: no mail server", True),
            (None, 1, logging.INFO, "attempt 1 of 1 failed; no attempt follows: RuntimeError: no mail server", True),
            ("secret", 25, logging.INFO, "attempt 1 of 25 failed; no attempt follows: http_403: refused", False),
            ("secret", 25, logging.DEBUG, "attempt 1 of 25 failed; no attempt follows: http_403: refused", True),
        ]
        for payload, max_attempts, level, words, has_traceback in cases:
            queue = str(uuid.uuid4())
            with self.assertLogs("milepost", level) as logged:
                self.run_worker({"k": handler}, queues=[queue], name="w")
                job = self.client.create(NewJob("k", payload, queue=queue, max_attempts=max_attempts)).id
                of_job = lambda: [record for record in logged.records if job in record.getMessage()]
                record = until("the failure is logged", of_job)[0]
                self.assertEqual(record.getMessage(), f"job {job} (k): {words}")
                self.assertEqual((record.levelname, bool(record.exc_info)), ("WARNING", has_traceback))
                self.assertIn(f"INFO:milepost:worker w is registered at {URL}; queues: {queue}; kinds: k", logged.output)
                self.assertNotIn("secret", "".join(logged.output))

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
