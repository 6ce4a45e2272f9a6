package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests of the HTTP client, also during faults of the server. */
class ClientTest extends Workplace {
    private IllServer ill;
    private Client client;

    @BeforeEach
    void startProxy() throws IOException {
        ill = new IllServer(URL);
        atTheEnd(ill);
        client = Client.of(ill.url);
    }

    private NewJob job() {
        return NewJob.of("k", null).queue(queue);
    }

    private List<?> listed() {
        return (List<?>) ((Map<?, ?>) healthy.ask("GET", "/v1/jobs?limit=1000&queue=" + queue, null)).get("items");
    }

    @Test
    void a_job_is_created_once_under_its_key() {
        var mail = NewJob.of("mail", new Mail("ada")).queue(queue).key(queue);
        Created first = healthy.create(mail);
        assertEquals(new Created(first.id(), true), healthy.create(mail));
        assertEquals(new Mail("ada"), healthy.job(first.id()).payload(Mail.class, RECORDS));
    }

    @Test
    void a_job_has_the_settings_of_the_request() {
        Instant startAt = Instant.parse("2099-12-31T22:59:59.123Z");
        String parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        UUID id = healthy.create(job().priority(3).startAt(startAt).maxAttempts(7).timeout(Duration.ofSeconds(90)).traceparent(parent)).id();
        JobView shown = healthy.job(id);
        assertEquals(List.of(3L, 7, startAt.toString(), parent, "pending"), List.of(shown.fields().get("priority"), shown.maxAttempts(),
            shown.fields().get("ready_at"), shown.fields().get("traceparent"), shown.state()));
        assertEquals(Map.of(), shown.fields().get("payload"));
        assertThrows(IllegalArgumentException.class, () -> healthy.create(job().id(id)));
        assertThrows(IllegalArgumentException.class, () -> healthy.createMany(List.of(job().traceparent(parent))));
    }

    @Test
    void many_jobs_are_created_all_or_none() {
        List<Created> created = healthy.createMany(IntStream.range(0, 120).mapToObj(n -> NewJob.of("k", n).queue(queue)).toList());
        assertEquals(120, new HashSet<>(created).size());
        assertEquals(120, listed().size());
        var refused = assertThrows(ProblemException.class, () -> healthy.createMany(List.of(job(), NewJob.of("", null))));
        assertEquals(List.of(422, "invalid_job", Optional.of("jobs[1].kind")), List.of(refused.status(), refused.code(), refused.at()));
        assertEquals(120, listed().size());
    }

    @Test
    void a_batch_is_started_once_under_its_key_and_for_its_day() {
        healthy.ask("POST", "/v1/dags", Map.of("name", queue, "tasks", Map.of("a", Map.of("kind", "k", "queue", queue, "payload", "${ input.n } on ${ tick.date }"))));
        var batch = NewBatch.of(queue, Map.of("n", 7)).key(queue).nominalAt(Instant.parse("2026-11-21T23:30:00Z"), ZoneId.of("Europe/Berlin"));
        Created first = healthy.startBatch(batch);
        assertEquals(new Created(first.id(), true), healthy.startBatch(batch));
        UUID job = UUID.fromString((String) ((Map<?, ?>) listed().get(0)).get("id"));
        assertEquals("7 on 2026-11-22", healthy.job(job).payload(String.class, RECORDS));
        assertNotEquals(first.id(), healthy.startBatch(NewBatch.of(queue, Map.of("n", 8))).id());
        assertEquals(404, assertThrows(ProblemException.class, () -> healthy.startBulk(NewBulkRun.of(queue, null))).status());
    }

    @Test
    void an_address_must_be_one_of_a_server_and_no_password_is_part_of_a_message() {
        for (String url : List.of("127.0.0.1:7070", "ftp://a", "http:///x", "x")) assertThrows(IllegalArgumentException.class, () -> Client.of(url), url);
        var refused = assertThrows(UnreachableException.class, () -> Client.of("http://ada:secret@127.0.0.1:9").ask("GET", "/v1/jobs", null));
        assertTrue(refused.getMessage().startsWith("http://127.0.0.1:9 does not answer: "), refused.getMessage());
    }

    @Test
    void a_job_is_created_once_however_often_it_takes() {
        ill.meets("POST", "/v1/jobs", IllServer.LOSE, IllServer.status(408), ill.withRetryAfter(429, 1));
        long began = System.nanoTime();
        UUID id = client.create(job()).id();
        assertTrue(System.nanoTime() - began > 1_600_000_000L);
        assertEquals(List.of(IllServer.LOST, 408, 429, 200), ill.answered("POST", "/v1/jobs"));
        assertEquals(List.of(id.toString()), listed().stream().map(one -> ((Map<?, ?>) one).get("id")).toList());
    }

    @Test
    void the_page_of_a_proxy_is_no_answer() {
        ill.meets("POST", "/v1/jobs", IllServer.PAGE);
        client.create(job());
        assertEquals(List.of(200, 201), ill.answered("POST", "/v1/jobs"));
        assertEquals(1, listed().size());
        for (String body : List.of("{}", "null", "{\"id\": 5}", "{\"id\": \"x\", \"duplicate\": false}", "[]")) {
            ill.meets("POST", "/v1/jobs", IllServer.answer(200, body));
            assertThrows(UnreachableException.class, () -> client.create(job()), body);
        }
        ill.meets("POST", "/v1/jobs", IllServer.answer(403, "<html>"));
        assertEquals("not_milepost", assertThrows(ProblemException.class, () -> client.create(job())).code());
    }

    @Test
    void what_is_refused_for_good_is_asked_once() {
        ill.meets("POST", "/v1/jobs", IllServer.status(403));
        assertThrows(ProblemException.class, () -> client.create(job()));
        assertEquals(List.of(403), ill.answered("POST", "/v1/jobs"));
    }

    @Test
    void an_answer_that_never_ends_is_abandoned_in_time() {
        for (var fault : List.of(IllServer.TRICKLE, IllServer.HANG)) {
            long began = System.nanoTime();
            ill.meets("GET", "/v1/queues", fault);
            var late = assertThrows(UnreachableException.class, () -> client.timeout(Duration.ofMillis(500)).ask("GET", "/v1/queues", null));
            assertTrue(late.getMessage().endsWith("does not answer: no complete answer within 0.5 s"), late.getMessage());
            assertTrue(System.nanoTime() - began < 15_000_000_000L);
        }
    }

    @Test
    void a_request_that_is_rejected_before_it_is_read_is_a_problem() throws Exception {
        try (var server = new ServerSocket(0, 5, InetAddress.getByName("127.0.0.1"))) {
            var thread = new Thread(() -> {
                try {
                    for (int n = 0; n < 8; n++) {
                        try (var connection = server.accept()) {
                            connection.getInputStream().readNBytes(1000);
                            String body = "{\"code\": \"body_too_large\", \"detail\": \"long\"}";
                            connection.getOutputStream().write(("HTTP/1.1 413 \r\nContent-Length: " + body.length() + "\r\n\r\n" + body).getBytes(StandardCharsets.UTF_8));
                        }
                    }
                } catch (IOException closed) {
                    // The test has ended.
                }
            });
            thread.setDaemon(true);
            thread.start();
            var large = NewJob.of("k", "x".repeat(50_000_000));
            Client early = Client.of("http://127.0.0.1:" + server.getLocalPort());
            for (int n = 0; n < 2; n++) assertEquals(413, assertThrows(ProblemException.class, () -> early.create(large)).status());
        }
    }

    @Test
    void a_wait_outlasts_faults_and_ends_in_time() throws Exception {
        UUID job = create("k");
        healthy.operate(job, "cancel", Map.of());
        ill.meets("GET", job.toString(), IllServer.status(503), IllServer.LOSE, IllServer.PAGE);
        assertEquals("canceled", client.await(job, Duration.ofSeconds(120)).state());
        ill.meets("GET", job.toString(), IllServer.HANG, IllServer.HANG);
        var late = assertThrows(TimeoutException.class, () -> client.await(job, Duration.ofMillis(200)));
        assertTrue(late.getMessage().startsWith("job " + job + " has not ended within 0.2 s: ") && late.getMessage().contains("does not answer"), late.getMessage());
        UUID other = create("other");
        // On a busy machine, the first answer can be too late.
        until("the message has the last state", () -> assertThrows(TimeoutException.class, () -> client.await(other, Duration.ofMillis(100)))
            .getMessage().endsWith("its state is pending"));
        assertEquals(404, assertThrows(ProblemException.class, () -> client.await(UUID.randomUUID(), Duration.ofSeconds(120))).status());
    }

    @Test
    void an_interrupted_request_ends_and_keeps_the_interrupt() throws Exception {
        ill.meets("GET", "/v1/queues", IllServer.HANG);
        var errors = new java.util.concurrent.CompletableFuture<Boolean>();
        var thread = new Thread(() -> {
            assertThrows(UnreachableException.class, () -> client.ask("GET", "/v1/queues", null));
            errors.complete(Thread.currentThread().isInterrupted());
        });
        thread.start();
        until("the request hangs", () -> !ill.answered("GET", "/v1/queues").isEmpty());
        thread.interrupt();
        assertTrue(errors.get());
    }
}
