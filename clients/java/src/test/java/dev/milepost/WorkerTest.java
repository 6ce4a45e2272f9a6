package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;

/** Tests of the worker with the real server. */
class WorkerTest extends Workplace {
    /** Heartbeats, which report requests to stop, are sent three times per lease. */
    private static final Duration SHORT_LEASE = Duration.ofSeconds(6);

    private record Row(int row) {}

    @Test
    void handlers_run_jobs_and_their_results_are_stored() throws Exception {
        runWorker(healthy, worker -> worker.handle("double", Integer.class, job -> job.payload() * 2).concurrency(8));
        List<UUID> jobs = new ArrayList<>();
        for (int n = 0; n < 50; n++) jobs.add(create(NewJob.of("double", n)));
        for (int n = 0; n < 50; n++) assertEquals(2 * n, result(jobs.get(n), Integer.class));
    }

    @Test
    void a_handler_receives_the_settings_of_its_job() throws Exception {
        var seen = new CompletableFuture<Job<Mail>>();
        runWorker(healthy, worker -> worker.handle("k", Mail.class, job -> seen.complete(job)));
        UUID id = create(NewJob.of("k", new Mail("ada")).group(queue).maxAttempts(3).timeout(Duration.ofMinutes(5)));
        ended(id);
        Job<Mail> job = seen.get();
        assertEquals(List.of(id, "k", queue, new Mail("ada"), Optional.of(queue), Optional.empty(), 1, 3, Optional.of(Duration.ofMinutes(5)), Optional.empty()),
            List.of(job.id(), job.kind(), job.queue(), job.payload(), job.group(), job.batch(), job.attempt(), job.maxAttempts(), job.timeout(), job.nominalAt()));
        assertTrue(Duration.between(job.createdAt(), Instant.now()).abs().toMinutes() < 10);
        assertEquals(1, job.runToken());
        assertEquals(Optional.empty(), job.checkpoint(Row.class));
    }

    @Test
    void a_task_receives_its_batch_and_the_nominal_time() throws Exception {
        healthy.ask("POST", "/v1/dags", Map.of("name", queue, "tasks", Map.of("a", Map.of("kind", "k", "queue", queue))));
        Instant tick = Instant.parse("2026-11-21T23:30:00Z");
        UUID batch = healthy.startBatch(NewBatch.of(queue, null).nominalAt(tick, null)).id();
        var seen = new CompletableFuture<Job<Json.Text>>();
        runWorker(healthy, worker -> worker.handle("k", Json.Text.class, job -> seen.complete(job)));
        assertEquals(List.of(Optional.of(batch), Optional.of(tick)), List.of(seen.get().batch(), seen.get().nominalAt()));
    }

    @Test
    void the_end_of_a_job_is_awaited() throws Exception {
        runWorker(healthy, worker -> worker.handle("good", Object.class, job -> List.of("done"))
            .handle("bad", Object.class, job -> { throw new IllegalStateException("no"); }));
        assertEquals(Optional.of(List.of("done")), healthy.await(create("good"), Duration.ofSeconds(120)).result(Object.class, RECORDS));
        JobView bad = healthy.await(create(NewJob.of("bad", null).maxAttempts(1)), Duration.ofSeconds(120));
        JobView.Failure failure = bad.lastFailure().orElseThrow();
        assertEquals("IllegalStateException", failure.code());
        assertTrue(failure.message().matches("(?s)java.lang.IllegalStateException: no\n    at .*WorkerTest\\..*"), failure.message());
    }

    @Test
    void a_failure_is_reported_and_the_next_attempt_continues_from_the_checkpoint() throws Exception {
        runWorker(healthy, worker -> worker.handle("k", Object.class, job -> {
            Optional<Row> checkpoint = job.checkpoint(Row.class);
            if (checkpoint.isPresent()) return checkpoint.get().row();
            job.progress(1, 2L, "half");
            job.saveCheckpoint(new Row(17));
            throw new Failed("not_yet", "not yet").delay(Duration.ofHours(1));
        }));
        UUID job = create("k");
        assertEquals(Map.of("done", 1L, "total", 2L, "message", "half"), ended(job, "retry_wait").fields().get("progress"));
        healthy.operate(job, "retry", Map.of());
        assertEquals(17, result(job, Integer.class));
        assertEquals(Arrays.asList("not_yet", null), attempts(job));
    }

    @Test
    void a_kind_has_the_backoff_that_its_worker_states() throws Exception {
        Handler<Object> later = job -> { throw new Failed("not_yet", "not yet").delay(Duration.ofSeconds(1)); };
        // Longer than the default, which is at most an hour.
        var twoHours = new Backoff(Duration.ofHours(2), Duration.ofHours(2), 0);
        runWorker(healthy, worker -> worker.handle("slow", Object.class, later).handle("usual", Object.class, later).backoff("slow", twoHours));
        Instant began = Instant.now();
        for (String kind : List.of("slow", "usual")) {
            Instant readyAt = Instant.parse((String) ended(create(kind), "retry_wait").fields().get("ready_at"));
            assertEquals(kind.equals("slow"), Duration.between(began, readyAt).toMinutes() >= 119, kind);
        }
    }

    @Test
    void a_worker_that_contradicts_itself_is_refused() {
        var refused = assertThrows(ProblemException.class, () -> Worker.builder(healthy).handle("k", Object.class, job -> null)
            .backoff("k", new Backoff(Duration.ofSeconds(2), Duration.ofSeconds(1))).build().run());
        assertEquals(List.of("invalid_backoff", Optional.of("backoffs.k")), List.of(refused.code(), refused.at()));
        assertThrows(IllegalArgumentException.class, () -> Worker.builder(healthy).build());
        Worker once = Worker.builder(healthy).queues(queue).handle("k", Object.class, job -> null).build();
        once.close();
        once.run();
        assertThrows(IllegalStateException.class, once::run);
    }

    @Test
    void a_snooze_counts_no_attempt() throws Exception {
        List<Integer> seen = new CopyOnWriteArrayList<>();
        runWorker(healthy, worker -> worker.handle("k", Object.class, job -> {
            seen.add(job.attempt());
            if (seen.size() == 1) throw new Snooze(Duration.ofMillis(50), "later");
            return null;
        }));
        ended(create(NewJob.of("k", null).maxAttempts(1)));
        assertEquals(List.of(1, 1), seen);
    }

    private UUID canceledWhileRunning(Handler<Object> handler) throws Exception {
        runWorker(healthy, worker -> worker.handle("k", Object.class, handler).lease(SHORT_LEASE));
        UUID job = create("k");
        ended(job, "running");
        assertEquals("stop_requested", healthy.operate(job, "cancel", Map.of("grace_ms", 60_000)));
        return job;
    }

    @Test
    void a_running_job_that_checks_is_canceled() throws Exception {
        ended(canceledWhileRunning(job -> {
            while (true) {
                try {
                    job.check();
                } catch (Exception ignored) {
                    return "ignored";
                }
                Thread.onSpinWait();
            }
        }), "canceled");
    }

    @Test
    void a_running_job_that_waits_is_interrupted_and_canceled() throws Exception {
        ended(canceledWhileRunning(job -> {
            Thread.sleep(Duration.ofHours(1).toMillis());
            return null;
        }), "canceled");
    }

    @Test
    void a_handler_that_returns_after_a_request_to_stop_has_succeeded() throws Exception {
        UUID job = canceledWhileRunning(running -> {
            untilUninterrupted(running::stopRequested);
            return "done";
        });
        assertEquals("done", result(job, String.class));
    }

    @Test
    void an_aborted_job_can_be_resumed() throws Exception {
        List<Integer> tokens = new CopyOnWriteArrayList<>();
        runWorker(healthy, worker -> worker.handle("k", Object.class, job -> {
            tokens.add(job.runToken());
            while (tokens.size() == 1) {
                job.check();
                Thread.sleep(10);
            }
            return tokens.size();
        }).lease(SHORT_LEASE));
        UUID job = create("k");
        ended(job, "running");
        healthy.operate(job, "abort", Map.of("grace_ms", 60_000));
        ended(job, "aborted");
        healthy.operate(job, "resume", Map.of());
        assertEquals(2, result(job, Integer.class));
    }

    @Test
    void a_payload_that_does_not_fit_fails_without_another_attempt() throws Exception {
        runWorker(healthy, worker -> worker.handle("k", Mail.class, job -> null));
        UUID job = create(NewJob.of("k", Map.of("to", 5)));
        JobView.Failure failure = ended(job, "failed").lastFailure().orElseThrow();
        assertEquals("payload", failure.code());
        assertTrue(failure.message().contains("to: this number does not fit String"), failure.message());
    }

    private LogRecord lineOf(UUID job, List<LogRecord> records) throws Exception {
        return until("the line is logged", () -> records.stream().filter(one -> one.getMessage().contains(job.toString())).findFirst().orElse(null));
    }

    @Test
    void a_result_that_is_no_json_fails_the_attempt() throws Exception {
        List<LogRecord> records = logged();
        runWorker(healthy, worker -> worker.handle("k", Object.class, job -> new Object()));
        UUID job = create(NewJob.of("k", null).maxAttempts(1));
        ended(job, "failed");
        assertEquals(List.of("end_not_taken"), attempts(job));
        assertEquals("job " + job + " (k): attempt 1 of 1 failed; no attempt follows: end_not_taken: the result is not JSON: dev.milepost.Json$Malformed: the result of "
            + "type java.lang.Object cannot be converted to JSON: dev.milepost.Json$Malformed: java.lang.Object has no JSON form here; use a codec",
            lineOf(job, records).getMessage());
    }

    @Test
    void a_failed_attempt_is_logged_with_its_message_and_what_follows() throws Exception {
        List<LogRecord> records = logged();
        runWorker(healthy, worker -> worker.name("w").handle("k", Object.class, job -> {
            if (job.payload() instanceof String) throw new Failed("http_403", "refused").permanent();
            throw new RuntimeException("no mail server");
        }));
        record Case(Object payload, int maxAttempts, String words) {}
        for (var one : List.of(
            new Case(null, 2, "attempt 1 of 2 failed; another attempt follows: java.lang.RuntimeException: no mail server"),
            new Case(null, 1, "attempt 1 of 1 failed; no attempt follows: java.lang.RuntimeException: no mail server"),
            new Case("secret", 25, "attempt 1 of 25 failed; no attempt follows: http_403: refused"))) {
            UUID job = create(NewJob.of("k", one.payload).maxAttempts(one.maxAttempts));
            LogRecord line = lineOf(job, records);
            assertEquals("job " + job + " (k): " + one.words, line.getMessage());
            assertEquals(Level.WARNING, line.getLevel());
            assertTrue(line.getThrown() != null); // At level FINE also for `Failed`.
        }
        assertTrue(records.stream().anyMatch(one -> one.getMessage().equals("worker w is registered at " + URL + "; queues: " + queue + "; kinds: k")));
        assertFalse(records.stream().anyMatch(one -> one.getMessage().contains("secret")));
    }

    private static final class Evil extends RuntimeException {
        @Override
        public String toString() {
            throw this;
        }

        @Override
        public String getMessage() {
            throw this;
        }
    }

    @Test
    void whatever_a_handler_throws_is_the_end_of_its_attempt() throws Exception {
        List<Throwable> errors = List.of(new Evil(), new StackOverflowError(), new OutOfMemoryError(), new InterruptedException(), new Failed("a\0\ud800", "b\0\ud800"),
            new Failed("", null), new Exception("no \udc80") {}, new AssertionError());
        runWorker(healthy, worker -> worker.handle("k", Integer.class, job -> {
            Throwable error = errors.get(job.payload());
            if (error instanceof Error fatal) throw fatal;
            throw (Exception) error;
        }));
        List<String> codes = List.of("Evil", "StackOverflowError", "OutOfMemoryError", "InterruptedException", "a\ufffd\ufffd", "failed",
            "dev.milepost.WorkerTest$1", "AssertionError");
        for (int n = 0; n < errors.size(); n++) {
            UUID job = create(NewJob.of("k", n).maxAttempts(1));
            ended(job, "failed");
            assertEquals(List.of(codes.get(n)), attempts(job));
        }
    }

    @Test
    void long_delays_end_their_attempts() throws Exception {
        runWorker(healthy, worker -> worker.handle("k", Boolean.class, job -> {
            if (job.payload()) throw new Snooze(Duration.ofSeconds(Long.MAX_VALUE), null);
            throw new Failed("later", "later").delay(Duration.ofSeconds(Long.MAX_VALUE));
        }));
        UUID failed = create(NewJob.of("k", false));
        UUID snoozed = create(NewJob.of("k", true));
        ended(failed, "retry_wait");
        until("the job is snoozed", () -> !healthy.job(snoozed).state().equals("running") && healthy.job(snoozed).fields().get("token").equals(1L));
        assertEquals(List.of("later"), attempts(failed));
    }

    @Test
    void a_worker_that_stops_finishes_its_jobs_first() throws Exception {
        var letGo = new CountDownLatch(1);
        var worker = Worker.builder(healthy).queues(queue).waitForJobs(Duration.ofMillis(300)).handle("k", Object.class, job -> {
            letGo.await();
            return "done";
        }).build().start();
        UUID job = create("k");
        ended(job, "running");
        worker.stop();
        var closing = new Thread(worker::close);
        closing.start();
        closing.join(500);
        assertTrue(closing.isAlive());
        letGo.countDown();
        closing.join(120_000);
        assertFalse(closing.isAlive());
        assertEquals("done", result(job, String.class));
    }

    @Test
    void an_interrupt_stops_a_worker() throws Exception {
        Running running = runWorker(healthy, worker -> worker.handle("k", Object.class, job -> "done").waitForJobs(Duration.ofSeconds(20)));
        ended(create("k"));
        running.thread().interrupt();
        running.thread().join(15_000);
        assertFalse(running.thread().isAlive());
    }
}
