"""Tests of the client during and after faults of the server, with a faulty proxy in front of the real server."""

import asyncio
import socket
import sys
import threading
import time
import unittest
from unittest import mock

from milepost import Client, Failed, NewJob, Problem, Unreachable, Worker
from tests.ill import DENY, HANG, LOSE, TRICKLE, IllServer
from tests.workplace import URL, Workplace, until


# The page of a proxy that answers instead of the server.
PAGE = (200, {"Content-Type": "text/html"}, b"<html>captive</html>")


class IllTest(Workplace):
    def setUp(self):
        super().setUp()
        self.ill = IllServer(URL)
        self.addCleanup(self.ill.close)
        self.client = Client(self.ill.url)
        self.addCleanup(self.client.close)

    def meets(self, method, end, *faults):
        """Sets the faults of the next requests whose path ends with `end`, one for each request."""
        left = list(faults)
        self.ill.fault = lambda did, path: left.pop(0) if left and did == method and path.endswith(end) else None

    def work(self, handler, lease_s=60.0, concurrency=4):
        self.run_worker({"k": handler}, lease_s=lease_s, concurrency=concurrency)


class CreateIllTest(IllTest):
    def test_a_job_is_created_once_however_often_it_takes(self):
        self.meets("POST", "/v1/jobs", LOSE, (408, {}), (429, {"Retry-After": "1"}))
        began = time.monotonic()
        created = self.client.create(NewJob("k", queue=self.queue))
        self.assertGreaterEqual(time.monotonic() - began, 1.0 + 0.2 + 0.4)
        self.assertEqual(self.ill.answered("POST", "/v1/jobs"), ["lost", 408, 429, 200])
        self.assertEqual([job["id"] for job in self.healthy.jobs(queue=self.queue)], [created.id])

    def test_the_page_of_a_proxy_is_no_answer(self):
        self.meets("POST", "/v1/jobs", PAGE)
        created = self.client.create(NewJob("k", queue=self.queue))
        self.assertEqual(self.ill.answered("POST", "/v1/jobs"), [200, 201])
        self.assertEqual([job["id"] for job in self.healthy.jobs(queue=self.queue)], [created.id])
        for body in (b"{}", b"null"):
            self.meets("POST", "/v1/jobs", (200, {}, body))
            with self.assertRaises(Unreachable):
                self.client.create(NewJob("k", queue=self.queue))

    def test_what_is_refused_for_good_is_asked_once(self):
        self.meets("POST", "/v1/jobs", (403, {}))
        with self.assertRaises(Problem):
            self.client.create(NewJob("k", queue=self.queue))
        self.assertEqual(self.ill.answered("POST", "/v1/jobs"), [403])

    def test_a_connection_that_may_be_closed_is_not_used(self):
        job = self.create()
        self.ill.drops_idle = True
        with mock.patch("milepost.client.IDLE_S", 0.0):
            for _ in range(2):
                self.client.operate(job, "snooze", delay_ms=60_000)
        self.assertEqual(self.ill.answered("POST", "/operate"), [200, 200])

    def test_of_many_connections_that_broke_together_one_request_fails(self):
        job = self.create()
        self.ill.drops_idle = True
        together = threading.Barrier(8)
        self.ill.fault = lambda did, path: together.wait(60) and None
        asking = [threading.Thread(target=self.client.job, args=(job,)) for _ in range(8)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        self.ill.fault, self.ill.drops_idle = lambda did, path: None, False
        with self.assertRaises(Unreachable):
            self.client.ask("GET", f"/v1/jobs/{job}")
        self.assertEqual(self.client.ask("GET", f"/v1/jobs/{job}")["id"], job)

    def test_a_request_that_is_rejected_before_it_is_read_raises_a_problem(self):
        answer = b'HTTP/1.1 413 \r\nContent-Length: 44\r\n\r\n{"code": "body_too_large", "detail": "long"}'
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def refuse():
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

        threading.Thread(target=refuse, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.getsockname()[1]}")
        self.addCleanup(client.close)
        for _ in range(2):  # The second on a new connection.
            with self.assertRaises(Problem) as refused:
                client.create(NewJob("k", "x" * 50_000_000))
            self.assertEqual(refused.exception.status, 413)

    def test_an_answer_that_trickles_in_is_given_up_in_time(self):
        job = self.create()
        self.meets("GET", job, TRICKLE)
        with self.assertRaises(Unreachable):
            self.client.ask("GET", f"/v1/jobs/{job}", timeout_s=0.5)


    def test_a_wait_outlasts_faults_and_ends_in_time(self):
        job = self.create()
        self.healthy.operate(job, "cancel")
        self.meets("GET", job, (503, {}), LOSE, PAGE)
        self.assertEqual(self.client.wait(job, 120)["state"], "canceled")
        self.meets("GET", job, HANG, HANG)
        with self.assertRaisesRegex(TimeoutError, "does not answer"):
            self.client.wait(job, 0.2)
        with self.assertRaises(Problem) as refused:
            self.client.wait(self.queue, 120)
        self.assertEqual(refused.exception.status, 404)

    def test_no_password_is_part_of_an_address_in_a_message(self):
        with self.assertRaisesRegex(Unreachable, "http://127.0.0.1:9 does not answer"):
            Client("http://ada:secret@127.0.0.1:9").ask("GET", "/v1/jobs")


class WorkerIllTest(IllTest):
    def meets_other_shapes(self, verb, *bodies):
        """Replaces the next answers by answers that are not from Milepost."""
        self.meets("POST", verb, *((201, {}, body) for body in bodies), (204, {}))

    def test_an_end_that_an_open_transaction_holds_is_reported_again(self):
        held = (200, {}, b'{"runs": ["held"]}')
        self.meets("POST", "/finish", held, held)
        job = self.create()
        self.work(lambda job: "done")
        self.assertEqual(self.ended(job)["result"], "done")
        until("the report of the end is answered", lambda: len(self.ill.answered("POST", "/finish")) == 3)

    def test_the_log_says_why_an_end_was_ignored(self):
        fenced = (200, {}, b'{"runs": ["fenced"]}')
        for stops, words in ((True, "the job was canceled"), (False, "the job was taken over, or an operator or another program had ended it")):
            self.meets("POST", "/finish", fenced)
            with self.assertLogs("milepost") as logged:
                self.run_worker({"k": lambda job: job.payload and until("a stop is requested", lambda: job.stop_requested)}, lease_s=6.0)
                job = self.create(payload=stops)
                if stops:
                    self.ended(job, "running")
                    self.healthy.operate(job, "cancel", grace_ms=60_000)
                line = f"WARNING:milepost:job {job} (k): the end of attempt 1 was ignored: {words}"
                until("the line is logged", lambda: line in logged.output)

    def registrations(self):
        return self.ill.answered("POST", "/v1/workers")

    def test_ends_are_reported_in_requests_that_the_server_accepts(self):
        returned, all_returned = threading.Semaphore(0), threading.Event()
        self.ill.refuses = lambda jobs: all_returned.wait(120) and None
        sizes = [17_000_000] + [1_000_000] * 24

        def handler(job):
            returned.release()
            return "x" * sizes[job.payload]

        self.work(handler, concurrency=len(sizes))
        large, *jobs = [self.create(payload=n, max_attempts=1) for n in range(len(sizes))]
        for _ in sizes:
            self.assertTrue(returned.acquire(timeout=120))
        all_returned.set()
        for job in jobs:
            self.assertEqual(self.ended(job)["attempt"], 1)
        self.ended(large, "failed")
        self.assertEqual(self.attempts(large), ["end_not_taken"])
        sent = [(jobs, int(headers["Content-Length"])) for jobs, headers in zip(self.ill.finished, self.headers_of("/finish"))]
        self.assertLess(max(size for jobs, size in sent if len(jobs) > 1), 8 << 20)
        self.assertEqual(self.registrations(), [201])

    def headers_of(self, end):
        return [headers for _, path, _, headers in list(self.ill.asked) if path.endswith(end)]

    def test_an_end_that_the_server_rejects_fails_only_its_run(self):
        returned, all_returned = threading.Semaphore(0), threading.Event()
        poison = self.create(payload="poison", max_attempts=1)
        left = [poison] * 4  # Refused in a report of all, of a half, of a quarter, and alone.

        def refuses(jobs):
            all_returned.wait(120)
            return (422, {}) if poison in jobs and left and left.pop() else None

        self.ill.refuses = refuses
        self.work(lambda job: returned.release(), concurrency=9)
        jobs = [self.create() for _ in range(8)]
        for _ in range(9):
            self.assertTrue(returned.acquire(timeout=120))
        all_returned.set()
        for job in jobs:
            self.assertEqual(self.ended(job)["attempt"], 1)
        self.ended(poison, "failed")
        self.assertEqual(self.attempts(poison), ["end_not_taken"])
        self.assertEqual(self.registrations(), [201])

    def test_a_place_is_occupied_until_the_end_of_its_run_is_reported(self):
        began, seen = [], []

        def refuses(jobs):
            if len(seen) < 4:
                seen.append(len(began))
                return 503, {}

        self.ill.refuses = refuses
        self.work(lambda job: began.append(job.id), concurrency=1)
        jobs = [self.create(), self.create()]
        for job in jobs:
            self.ended(job)
        self.assertEqual(seen, [1] * 4)

    def test_held_ends_occupy_no_places_and_delay_no_other_ends(self):
        held = [self.create() for _ in range(4)]
        self.ill.held.update(held)
        worker, thread = self.run_worker({"k": lambda job: None}, concurrency=2)
        until("all are held", lambda: {job for jobs in self.ill.finished for job in jobs} == set(held))
        others = [self.create() for _ in range(6)]
        for job in others:
            self.ended(job)
        again = [jobs for jobs in self.ill.finished if set(jobs) & set(others)]
        self.assertFalse([jobs for jobs in again if set(jobs) & set(held)])
        worker.stop()
        reports = len(self.ill.finished)
        until("the held ends are reported again", lambda: len(self.ill.finished) > reports + 2)
        self.assertTrue(thread.is_alive())
        self.ill.held.clear()
        for job in held:
            self.assertEqual(self.ended(job)["attempt"], 1)
        thread.join(120)
        self.assertFalse(thread.is_alive())
        self.assertEqual(self.registrations(), [201])

    def test_many_held_ends_occupy_places_and_are_reported_in_requests_that_the_server_accepts(self):
        created = [job.id for job in self.healthy.create_many([NewJob("k", queue=self.queue) for _ in range(2_700)])]
        self.ill.held.update(created)
        self.work(lambda job: None, concurrency=600)
        reported = lambda: {job for jobs in list(self.ill.finished) for job in jobs}
        until("2,000 ends are held, and more occupy the places", lambda: len(reported()) >= 2_600)
        reports = len(self.ill.finished)
        until("the held ends are reported again", lambda: len(self.ill.finished) > reports + 12)
        self.assertEqual(len(reported()), 2_600)
        self.ill.held.clear()
        until("all have ended", lambda: sum(1 for _ in self.healthy.jobs(queue=self.queue, state="succeeded")) == len(created))
        self.assertLessEqual(max(map(len, self.ill.finished)), 500)
        self.assertEqual(self.registrations(), [201])

    def test_a_claim_answered_in_another_shape_is_made_again(self):
        self.meets_other_shapes("/claim", b"{}", b"null", b'{"jobs": {}}')
        self.work(lambda job: None)
        self.assertEqual(self.ended(self.create())["attempt"], 1)

    def test_a_heartbeat_answered_in_another_shape_is_sent_again(self):
        self.meets_other_shapes("/heartbeat", b"{}", b"null")
        self.work(lambda job: until("a heartbeat succeeds after the faults", lambda: 200 in self.ill.answered("POST", "/heartbeat")))
        self.assertEqual(self.ended(self.create())["attempt"], 1)
        self.assertEqual(self.ill.answered("POST", "/heartbeat")[:4], [201, 201, 204, 200])

    def test_an_end_answered_in_another_shape_is_told_again(self):
        self.meets_other_shapes("/finish", b"{}", b"null", b'{"runs": []}')
        self.work(lambda job: "done")
        self.assertEqual(self.ended(self.create())["result"], "done")

    def test_a_success_is_told_until_the_server_takes_it(self):
        self.meets("POST", "/finish", (503, {}), (429, {"Retry-After": "1"}), (500, {}), (408, {}), LOSE)
        self.work(lambda job: "done")
        job = self.create()
        self.assertEqual(self.ended(job)["result"], "done")
        self.assertEqual(self.attempts(job), [None])

    def raises_once(self, verb):
        """Makes the client's next request to this verb raise an unexpected error."""
        ask, left = self.client.ask, [RuntimeError("unexpected")]

        def once(method, path, *more, **options):
            if left and path.endswith(verb):
                raise left.pop()
            return ask(method, path, *more, **options)

        patched = mock.patch.object(self.client, "ask", once)
        patched.start()
        self.addCleanup(patched.stop)

    def test_a_heartbeat_that_meets_an_unheard_of_error_is_sent_again(self):
        self.raises_once("/heartbeat")
        self.work(lambda job: until("a heartbeat is sent after the error", lambda: self.ill.answered("POST", "/heartbeat")))
        self.assertEqual(self.ended(self.create())["attempt"], 1)

    def test_an_end_that_meets_an_unheard_of_error_is_reported_again(self):
        self.raises_once("/finish")
        self.work(lambda job: job.attempt)
        self.assertEqual(self.ended(self.create())["result"], 1)
        self.assertEqual(self.registrations(), [201])

    def test_an_answer_that_never_comes_costs_no_lease(self):
        self.meets("POST", "/finish", HANG)
        self.work(lambda job: job.attempt, lease_s=30.0)
        self.assertEqual(self.ended(self.create())["result"], 1)
        until("the report of the end is answered", lambda: self.ill.answered("POST", "/finish") == ["hangs", 200])
        self.assertEqual(self.ill.answered("POST", "/v1/workers"), [201])

    def test_a_job_whose_end_cannot_be_told_is_tried_again(self):
        attempts = []
        self.ill.fault = lambda did, path: (503, {}) if path.endswith("/finish") and attempts[-1] < 2 else None

        def handler(job):
            attempts.append(job.attempt)
            return job.attempt

        self.work(handler, lease_s=2.0)
        job = self.create()
        # On a busy machine, a lease may be lost once more.
        self.assertGreaterEqual(self.ended(job)["result"], 2)

    def test_a_lost_lease_cancels_nothing(self):
        # Until the job runs again. On a busy machine, the worker that runs it first is not always the one that registered first.
        attempts = []
        self.ill.fault = lambda did, path: DENY if path.endswith("/heartbeat") and len(attempts) < 2 else None
        stopped = threading.Event()

        def handler(job):
            attempts.append(job.attempt)
            while job.attempt == attempts[0]:
                if job.stop_requested:
                    stopped.set()
                job.check()
                time.sleep(0.01)
            return job.attempt

        self.work(handler, lease_s=2.0)
        job = self.create()
        # On a busy machine, a lease may be lost once more.
        self.assertGreaterEqual(self.ended(job)["result"], 2)
        self.assertTrue(stopped.is_set())

    def test_a_worker_that_was_taken_for_dead_registers_anew_once_however_often_it_takes(self):
        self.work(lambda job: "done")
        until("the worker claims", lambda: self.ill.answered("POST", "/claim"))
        self.meets("POST", "/v1/workers", (503, {}), (429, {"Retry-After": "1"}), PAGE)
        worker = next(path for _, path, _, _ in self.ill.asked if path.endswith("/claim")).removesuffix("/claim")
        self.healthy.ask("DELETE", worker)
        self.ended(self.create())
        self.assertEqual(self.ill.answered("POST", "/v1/workers"), [201, 503, 429, 200, 201])

    def test_a_worker_that_may_not_register_says_so(self):
        self.meets("POST", "/v1/workers", (503, {}), (401, {}))
        with self.assertRaises(Problem) as refused:
            Worker(self.client, {"k": print}, queues=[self.queue]).run()
        self.assertEqual(refused.exception.status, 401)

    def finds_its_job_again(self, fault):
        job = self.create()
        left = {"/claim": [fault], "/jobs": [None, (503, {}), LOSE]}
        self.ill.fault = lambda _, path: next((of.pop(0) for end, of in left.items() if of and path.endswith(end)), None)
        self.work(lambda job: job.attempt)
        self.assertEqual(self.ended(job)["result"], 1)
        self.assertEqual(left, {"/claim": [], "/jobs": []})

    def test_a_job_of_a_claim_whose_answer_was_lost_is_run(self):
        self.finds_its_job_again(LOSE)

    def test_a_job_of_a_claim_that_was_refused_too_late_is_run(self):
        self.finds_its_job_again(DENY)


class HandlerTest(IllTest):
    def test_whatever_a_handler_raises_is_the_end_of_its_attempt(self):
        def handler(job):
            if job.payload:
                raise asyncio.CancelledError
            sys.exit(1)

        self.work(handler)
        for payload, code in ((False, "SystemExit"), (True, "CancelledError")):
            job = self.create(payload=payload, max_attempts=1)
            self.ended(job, "failed")
            self.assertEqual(self.attempts(job), [code])

    def test_half_a_surrogate_pair_in_an_error_keeps_its_code_and_its_delay(self):
        def handler(job):
            if job.payload:
                raise Failed("no \udc80", code="not_yet", delay_s=3600.0)
            raise ValueError("no \udc80")

        self.work(handler)
        for payload, code in ((True, "not_yet"), (False, "ValueError")):
            job = self.create(payload=payload)
            self.ended(job, "retry_wait")
            # On a slow machine the next attempt may have begun.
            self.assertEqual(self.attempts(job)[0], code)

    def test_a_delay_without_end_fails_the_attempt(self):
        def handler(job):
            raise Failed("later", delay_s=float("inf"))

        self.work(handler)
        job = self.create(max_attempts=1)
        self.ended(job, "failed")
        self.assertEqual(self.attempts(job), ["OverflowError"])

    def test_an_attempt_that_takes_too_long_fails_and_keeps_its_place(self):
        let_go, stopped, began = threading.Event(), threading.Event(), threading.Event()

        def handler(job):
            if job.timeout_ms is None:
                began.set()
                return
            let_go.wait(600)
            if job.stop_requested:
                stopped.set()
            return "too late"

        self.addCleanup(let_go.set)
        self.work(handler, lease_s=15.0, concurrency=1)
        job = self.create(timeout_ms=300, max_attempts=1)
        self.ended(job, "failed")
        self.assertEqual(self.attempts(job), ["timeout"])
        other = self.create()
        claims = len(self.ill.answered("POST", "/claim"))
        beats = len(self.ill.answered("POST", "/heartbeat"))
        until("the worker sends more heartbeats", lambda: len(self.ill.answered("POST", "/heartbeat")) > beats + 1)
        self.assertEqual((len(self.ill.answered("POST", "/claim")), began.is_set()), (claims, False))
        let_go.set()
        self.ended(other)
        self.assertTrue(stopped.is_set())
        self.assertEqual(self.healthy.job(job)["state"], "failed")


if __name__ == "__main__":
    unittest.main()
