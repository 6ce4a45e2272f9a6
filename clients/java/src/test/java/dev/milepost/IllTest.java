package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.LogRecord;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests of the worker during and after faults of the server, with a faulty proxy in front of the real server. */
class IllTest extends Workplace {
    private IllServer ill;
    private Client client;

    @BeforeEach
    void startProxy() throws IOException {
        ill = new IllServer(URL);
        atTheEnd(ill);
        client = Client.of(ill.url);
    }

    private Running work(Handler<Object> handler, Duration lease, int concurrency) {
        return runWorker(client, worker -> worker.handle("k", Object.class, handler).lease(lease).concurrency(concurrency));
    }

    private Running work(Handler<Object> handler) {
        return work(handler, Duration.ofSeconds(60), 4);
    }

    private List<Integer> registrations() {
        return ill.answered("POST", "/v1/workers");
    }

    private Set<String> reported() {
        Set<String> jobs = new HashSet<>();
        ill.finished.forEach(jobs::addAll);
        return jobs;
    }

    /** Replaces the next answers by answers that are not from Milepost. */
    private void meetsOtherShapes(String verb, String... bodies) {
        List<IllServer.Fault> faults = new ArrayList<>();
        for (String body : bodies) faults.add(IllServer.answer(201, body));
        faults.add(IllServer.answer(204, ""));
        ill.meets("POST", verb, faults.toArray(IllServer.Fault[]::new));
    }

    @Test
    void an_end_that_an_open_transaction_holds_is_reported_again() throws Exception {
        var held = IllServer.answer(200, "{\"runs\": [\"held\"]}");
        ill.meets("POST", "/finish", held, held);
        work(job -> "done");
        assertEquals("done", result(create("k"), String.class));
        until("the report of the end is answered", () -> ill.answered("POST", "/finish").size() == 3);
    }

    @Test
    void the_log_contains_why_an_end_was_ignored() throws Exception {
        List<LogRecord> records = logged();
        var fenced = IllServer.answer(200, "{\"runs\": [\"fenced\"]}");
        work(job -> {
            if (job.payload().equals(true)) untilUninterrupted(job::stopRequested);
            return null;
        }, Duration.ofSeconds(6), 4);
        for (boolean stops : List.of(true, false)) {
            ill.meets("POST", "/finish", fenced);
            UUID job = create(NewJob.of("k", stops));
            if (stops) {
                ended(job, "running");
                healthy.operate(job, "cancel", Map.of("grace_ms", 60_000));
            }
            String words = stops ? "the job was canceled" : "the job was taken over, or an operator or another program had ended it";
            String line = "job " + job + " (k): the end of attempt 1 was ignored: " + words;
            until("the line is logged", () -> records.stream().anyMatch(one -> one.getMessage().equals(line)));
        }
    }

    @Test
    void ends_are_reported_in_requests_that_the_server_accepts() throws Exception {
        var returned = new Semaphore(0);
        var allReturned = new CountDownLatch(1);
        ill.refuses = jobs -> {
            awaitQuietly(allReturned);
            return null;
        };
        int count = 25;
        work(job -> {
            returned.release();
            return "x".repeat(((Long) job.payload()) == 0 ? 17_000_000 : 1_000_000);
        }, Duration.ofSeconds(60), count);
        List<UUID> jobs = IntStream.range(0, count).mapToObj(n -> create(NewJob.of("k", n).maxAttempts(1))).toList();
        returned.acquire(count);
        allReturned.countDown();
        for (UUID job : jobs.subList(1, count)) assertEquals(1, ended(job).attempt());
        ended(jobs.get(0), "failed");
        assertEquals(List.of("end_not_taken"), attempts(jobs.get(0)));
        for (var asked : ill.asked) assertTrue(asked.bytes() < (8 << 20) + 100, asked::toString);
        assertEquals(List.of(201), registrations());
    }

    @Test
    void an_end_that_the_server_rejects_fails_only_its_run() throws Exception {
        var returned = new Semaphore(0);
        var allReturned = new CountDownLatch(1);
        String poison = create(NewJob.of("k", "poison").maxAttempts(1)).toString();
        Queue<String> left = new ConcurrentLinkedQueue<>(Collections.nCopies(4, poison)); // In a report of all, of a half, of a quarter, and alone.
        ill.refuses = jobs -> {
            awaitQuietly(allReturned);
            return jobs.contains(poison) && left.poll() != null ? IllServer.status(422) : null;
        };
        work(job -> {
            returned.release();
            return null;
        }, Duration.ofSeconds(60), 9);
        List<UUID> jobs = IntStream.range(0, 8).mapToObj(n -> create("k")).toList();
        returned.acquire(9);
        allReturned.countDown();
        for (UUID job : jobs) assertEquals(1, ended(job).attempt());
        ended(UUID.fromString(poison), "failed");
        assertEquals(List.of("end_not_taken"), attempts(UUID.fromString(poison)));
        assertEquals(List.of(201), registrations());
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void a_place_is_occupied_until_the_end_of_its_run_is_reported() throws Exception {
        List<UUID> began = new CopyOnWriteArrayList<>();
        List<Integer> seen = new CopyOnWriteArrayList<>();
        ill.refuses = jobs -> {
            if (seen.size() == 4) return null;
            seen.add(began.size());
            return IllServer.status(503);
        };
        work(job -> began.add(job.id()), Duration.ofSeconds(60), 1);
        for (UUID job : List.of(create("k"), create("k"))) ended(job);
        assertEquals(List.of(1, 1, 1, 1), seen);
    }

    @Test
    void held_ends_occupy_no_places_and_delay_no_other_ends() throws Exception {
        List<String> held = IntStream.range(0, 4).mapToObj(n -> create("k").toString()).toList();
        ill.held.addAll(held);
        Running running = work(job -> null, Duration.ofSeconds(60), 2);
        until("all are held", () -> reported().equals(Set.copyOf(held)));
        List<UUID> others = IntStream.range(0, 6).mapToObj(n -> create("k")).toList();
        for (UUID job : others) ended(job);
        for (List<String> jobs : ill.finished)
            if (jobs.stream().anyMatch(job -> others.contains(UUID.fromString(job)))) assertTrue(Collections.disjoint(jobs, held));
        running.worker().stop();
        int reports = ill.finished.size();
        until("the held ends are reported again", () -> ill.finished.size() > reports + 2);
        assertTrue(running.thread().isAlive());
        ill.held.clear();
        for (String job : held) assertEquals(1, ended(UUID.fromString(job)).attempt());
        running.thread().join(120_000);
        assertFalse(running.thread().isAlive());
        assertEquals(List.of(201), registrations());
    }

    @Test
    void many_held_ends_occupy_places_and_are_reported_in_requests_that_the_server_accepts() throws Exception {
        int count = 2_700;
        List<Created> created = healthy.createMany(Collections.nCopies(count, NewJob.of("k", null).queue(queue)));
        created.forEach(job -> ill.held.add(job.id().toString()));
        work(job -> null, Duration.ofSeconds(60), 600);
        until("2,000 ends are held, and more occupy the places", () -> reported().size() >= 2_600);
        int reports = ill.finished.size();
        until("the held ends are reported again", () -> ill.finished.size() > reports + 12);
        assertEquals(2_600, reported().size());
        ill.held.clear();
        for (Created job : created) ended(job.id());
        for (List<String> jobs : ill.finished) assertTrue(jobs.size() <= 500);
        assertEquals(List.of(201), registrations());
    }

    @Test
    void a_claim_answered_in_another_shape_is_made_again() throws Exception {
        meetsOtherShapes("/claim", "{}", "null", "{\"jobs\": {}}", "{\"jobs\": [5]}", "{\"jobs\": [{\"id\": \"x\"}]}", "<html>");
        work(job -> null);
        assertEquals(1, ended(create("k")).attempt());
    }

    @Test
    void a_heartbeat_answered_in_another_shape_is_sent_again() throws Exception {
        meetsOtherShapes("/heartbeat", "{}", "null");
        work(job -> until("a heartbeat succeeds after the faults", () -> ill.answered("POST", "/heartbeat").contains(200)));
        assertEquals(1, ended(create("k")).attempt());
        assertEquals(List.of(201, 201, 204, 200), ill.answered("POST", "/heartbeat").subList(0, 4));
    }

    @Test
    void an_end_answered_in_another_shape_is_reported_again() throws Exception {
        meetsOtherShapes("/finish", "{}", "null", "{\"runs\": []}");
        work(job -> "done");
        assertEquals("done", result(create("k"), String.class));
    }

    @Test
    void a_success_is_reported_until_the_server_accepts_it() throws Exception {
        ill.meets("POST", "/finish", IllServer.status(503), ill.withRetryAfter(429, 1), IllServer.status(500), IllServer.status(408), IllServer.LOSE);
        work(job -> "done");
        UUID job = create("k");
        assertEquals("done", result(job, String.class));
        assertEquals(Arrays.asList((Object) null), attempts(job));
        assertEquals(List.of(503, 429, 500, 408, IllServer.LOST, 200), until("the end is reported", () -> {
            var answers = ill.answered("POST", "/finish");
            return answers.size() == 6 ? answers : null;
        }));
    }

    @Test
    void an_answer_that_never_comes_costs_no_lease() throws Exception {
        ill.meets("POST", "/finish", IllServer.HANG);
        work(job -> job.attempt(), Duration.ofSeconds(30), 4);
        assertEquals(1, result(create("k"), Integer.class));
        until("the report of the end is answered", () -> ill.answered("POST", "/finish").equals(List.of(IllServer.HUNG, 200)));
        assertEquals(List.of(201), registrations());
    }

    @Test
    void a_job_whose_end_cannot_be_reported_is_tried_again() throws Exception {
        var attempts = new AtomicInteger();
        ill.fault = (did, path) -> path.endsWith("/finish") && attempts.get() < 2 ? IllServer.status(503) : null;
        work(job -> attempts.updateAndGet(last -> job.attempt()), Duration.ofSeconds(2), 4);
        // On a busy machine, a lease may be lost once more.
        assertTrue(result(create("k"), Integer.class) >= 2);
    }

    @Test
    void a_lost_lease_cancels_nothing() throws Exception {
        // Until the job runs again. On a busy machine, the worker that runs it first is not always the one that registered first.
        List<Integer> tokens = new CopyOnWriteArrayList<>();
        ill.fault = (did, path) -> path.endsWith("/heartbeat") && tokens.size() < 2 ? IllServer.DENY : null;
        var stopped = new AtomicBoolean();
        work(job -> {
            tokens.add(job.runToken());
            try {
                while (job.runToken() == tokens.get(0)) {
                    job.check();
                    Thread.onSpinWait();
                }
            } finally {
                // The check throws as soon as the worker learns that it has lost the lease.
                if (job.stopRequested()) stopped.set(true);
            }
            return job.attempt();
        }, Duration.ofSeconds(2), 4);
        assertTrue(result(create("k"), Integer.class) >= 2);
        assertTrue(stopped.get());
    }

    @Test
    void a_worker_that_was_taken_for_dead_registers_again_once_however_often_it_takes() throws Exception {
        work(job -> "done");
        until("the worker claims", () -> !ill.answered("POST", "/claim").isEmpty());
        ill.meets("POST", "/v1/workers", IllServer.status(503), ill.withRetryAfter(429, 1), IllServer.PAGE);
        String claim = ill.asked.stream().map(IllServer.Asked::path).filter(path -> path.endsWith("/claim")).findFirst().orElseThrow();
        healthy.ask("DELETE", claim.replaceFirst("/claim$", ""), null);
        ended(create("k"));
        assertEquals(List.of(201, 503, 429, 200, 201), registrations());
    }

    @Test
    void a_worker_that_may_not_register_throws_the_problem() {
        ill.meets("POST", "/v1/workers", IllServer.status(503), IllServer.status(401));
        Worker worker = Worker.builder(client).queues(queue).handle("k", Object.class, job -> null).build();
        assertEquals(401, assertThrows(ProblemException.class, worker::run).status());
    }

    private void findsItsJobAgain(IllServer.Fault fault) throws Exception {
        UUID job = create("k");
        Queue<IllServer.Fault> claims = new ConcurrentLinkedQueue<>(List.of(fault));
        Queue<Object> queries = new ConcurrentLinkedQueue<>(List.of("none", IllServer.status(503), IllServer.LOSE));
        ill.fault = (did, path) -> path.endsWith("/claim") ? claims.poll()
            : path.endsWith("/jobs") && queries.poll() instanceof IllServer.Fault next ? next : null;
        work(running -> running.attempt());
        assertEquals(1, result(job, Integer.class));
        assertTrue(claims.isEmpty() && queries.isEmpty());
    }

    @Test
    void a_job_of_a_claim_whose_answer_was_lost_is_run() throws Exception {
        findsItsJobAgain(IllServer.LOSE);
    }

    @Test
    void a_job_of_a_claim_that_was_refused_too_late_is_run() throws Exception {
        findsItsJobAgain(IllServer.DENY);
    }

    @Test
    void an_attempt_that_takes_too_long_fails_and_keeps_its_place() throws Exception {
        var letGo = new AtomicBoolean();
        var began = new AtomicBoolean();
        var stopped = new AtomicBoolean();
        atTheEnd(() -> letGo.set(true));
        work(job -> {
            if (job.timeout().isEmpty()) {
                began.set(true);
                return null;
            }
            untilUninterrupted(letGo::get);
            stopped.set(job.stopRequested());
            return "too late";
        }, Duration.ofSeconds(15), 1);
        UUID job = create(NewJob.of("k", null).timeout(Duration.ofMillis(300)).maxAttempts(1));
        ended(job, "failed");
        assertEquals(List.of("timeout"), attempts(job));
        UUID other = create("k");
        int claims = ill.answered("POST", "/claim").size();
        int beats = ill.answered("POST", "/heartbeat").size();
        until("the worker sends more heartbeats", () -> ill.answered("POST", "/heartbeat").size() > beats + 1);
        assertEquals(claims, ill.answered("POST", "/claim").size());
        assertFalse(began.get());
        letGo.set(true);
        ended(other);
        assertTrue(stopped.get());
        assertEquals("failed", healthy.job(job).state());
    }

    @Test
    void a_report_of_a_lost_run_stops_the_handler() throws Exception {
        var caught = new AtomicBoolean();
        ill.meets("POST", "/report", IllServer.status(503), IllServer.answer(200, "{\"accepted\": [false]}"));
        work(job -> {
            try {
                job.progress(1, null, null);
            } catch (JobStopped stop) {
                caught.set(true);
                throw stop;
            }
            return null;
        });
        UUID job = create("k");
        until("the handler is stopped", caught::get);
        assertEquals("running", healthy.job(job).state());
    }
}
