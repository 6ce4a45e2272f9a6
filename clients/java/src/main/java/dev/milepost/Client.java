package dev.milepost;

import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * Client of the HTTP API of {@code milepost serve}. Threads can share it.
 *
 * <p>Each method throws {@link ProblemException} if the server rejects the request, and {@link UnreachableException} if it does not answer.
 */
public final class Client {
    private static final int TRIES = 4;
    private static final Duration WAIT_PAUSE_MIN = Duration.ofMillis(100);
    private static final Duration WAIT_PAUSE_MAX = Duration.ofSeconds(1);

    private final Transport transport;
    private final Codec codec;

    private Client(Transport transport, Codec codec) {
        this.transport = transport;
        this.codec = codec;
    }

    /**
     * Returns a client of a server, such as {@code http://127.0.0.1:7070}, without a token. Requests time out after 60 s.
     *
     * @throws IllegalArgumentException if this is not the address of a server
     */
    public static Client of(String url) {
        return new Client(new Transport(HttpClient.newHttpClient(), URI.create(url), null, Duration.ofSeconds(60)), Codec.records());
    }

    /** Returns the same client with a token ({@code mp_…}); {@code null}: none. */
    public Client token(String token) {
        return new Client(transport.token(token), codec);
    }

    /** Returns the same client with another codec than {@link Codec#records}. */
    public Client codec(Codec codec) {
        return new Client(transport, codec);
    }

    /** Returns the same client with another time limit for requests. */
    public Client timeout(Duration timeout) {
        return new Client(transport.timeout(timeout), codec);
    }

    /** Returns the same client over another {@link HttpClient}, such as one with certificates or a proxy. */
    public Client http(HttpClient http) {
        return new Client(transport.http(http), codec);
    }

    /** Creates a job; returns when it is durable. Repeats the request if necessary; only one job is created. */
    public Created create(NewJob job) {
        return Created.of(create("/v1/jobs", job.body(codec), job.key(), job.traceparent()));
    }

    /** Creates up to 5,000 jobs, all or none; returns when they are durable. Repeats the request if necessary. */
    public List<Created> createMany(List<NewJob> jobs) {
        if (jobs.stream().anyMatch(job -> job.traceparent() != null))
            throw new IllegalArgumentException("the jobs of a request share its traceparent: create them one by one, or in SQL");
        Object answer = create("/v1/jobs/create-many", Map.of("jobs", jobs.stream().map(job -> job.body(codec)).toList()), null, null);
        return Answer.list(answer, "jobs").stream().map(Created::of).toList();
    }

    /** Starts a batch; returns when it is durable. Repeats the request if necessary; only one batch is started. */
    public Created startBatch(NewBatch batch) {
        return Created.of(create("/v1/batches", batch.body(codec), batch.key(), batch.traceparent()));
    }

    /** Starts a run of a bulk job; returns when it is durable. Repeats the request if necessary; only one run is started. */
    public Created startBulk(NewBulkRun run) {
        return Created.of(create("/v1/bulk-runs", run.body(codec), run.key(), run.traceparent()));
    }

    /**
     * Sends a signal to a batch; returns when it is durable. The task that waits for it succeeds, with the payload as its output. A second signal for the
     * batch with the same id changes nothing. Repeats the request if necessary.
     *
     * @param payload what {@link Json#write} accepts
     * @param id {@code null}: a new one
     * @return {@code accepted}, {@code duplicate}, or {@code late} if the task has ended
     */
    public String signal(UUID batch, String name, Object payload, String id) {
        Map<String, Object> body = new HashMap<>();
        body.put("name", name);
        body.put("payload", payload);
        body.put("id", id == null ? UUID.randomUUID().toString() : id);
        return Answer.part(Answer.of(ask("POST", "/v1/batches/" + batch + "/signals", body, TRIES)), "result", String.class);
    }

    /** Returns a job. */
    public JobView job(UUID id) {
        return JobView.of(ask("GET", "/v1/jobs/" + id, null, TRIES));
    }

    /**
     * Returns a job as soon as its state is {@code succeeded}, {@code failed}, {@code aborted}, {@code canceled} or {@code skipped}. Requests that
     * may succeed later are repeated.
     *
     * @throws TimeoutException if it has not ended in time; the message contains the last state or error
     */
    public JobView await(UUID id, Duration timeout) throws TimeoutException, InterruptedException {
        long until = System.nanoTime() + timeout.toNanos();
        Duration pause = WAIT_PAUSE_MIN;
        while (true) {
            String last;
            try {
                Duration left = Duration.ofNanos(until - System.nanoTime());
                Duration limit = Waits.min(transport.timeout(), Waits.max(left, WAIT_PAUSE_MAX));
                JobView job = JobView.of(transport.ask("GET", "/v1/jobs/" + id, null, Map.of(), limit));
                if (job.hasEnded()) return job;
                last = "its state is " + job.state();
            } catch (MilepostException error) {
                if (!Waits.passes(error)) throw error;
                last = error.getMessage();
                pause = Waits.max(pause, Waits.after(error, 0));
            }
            Duration left = Duration.ofNanos(until - System.nanoTime());
            if (left.isNegative()) throw new TimeoutException("job " + id + " has not ended within " + timeout.toMillis() / 1e3 + " s: " + last);
            Thread.sleep(Math.max(Waits.min(pause, left).toMillis(), 1));
            pause = Waits.min(pause.multipliedBy(2), WAIT_PAUSE_MAX);
        }
    }

    /**
     * Performs an operation on a job, such as {@code cancel}, {@code retry} or {@code rerun}.
     *
     * @param more further fields of the request, such as {@code reason} or {@code delay_ms}
     * @return its state, or {@code stop_requested}
     */
    public String operate(UUID id, String operation, Map<String, ?> more) {
        Map<String, Object> body = new HashMap<>(more);
        body.put("operation", operation);
        return Answer.part(Answer.of(ask("POST", "/v1/jobs/" + id + "/operate", body)), "outcome", String.class);
    }

    /**
     * Sends any other request of the API once, such as {@code ask("PUT", "/v1/schedules/nightly", Map.of(…))}.
     *
     * @param body what {@link Json#write} accepts; {@code null}: none
     * @return the answer, as {@link Json} reads it
     */
    public Object ask(String method, String path, Object body) {
        return ask(method, path, body, 1);
    }

    /** Returns the server's address for logs: without a user name and a password. */
    public String address() {
        return transport.address();
    }

    Codec codec() {
        return codec;
    }

    /** Sends a request once, with another time limit than that of the client. {@code body}: JSON, or {@code null}. */
    Object askWithin(Duration timeout, String method, String path, byte[] body) {
        return transport.ask(method, path, body, Map.of(), timeout);
    }

    Object ask(String method, String path, Object body, int tries) {
        return repeated(() -> transport.ask(method, path, Transport.json(body), Map.of(), transport.timeout()), tries);
    }

    private Object create(String path, Map<String, ?> body, String key, String traceparent) {
        Map<String, String> headers = new HashMap<>();
        if (key == null) headers.put("Idempotency-Key", UUID.randomUUID().toString());
        if (traceparent != null) headers.put("traceparent", traceparent);
        byte[] json = Transport.json(body);
        return repeated(() -> transport.ask("POST", path, json, headers, transport.timeout()), TRIES);
    }

    private static Object repeated(Supplier<Object> request, int tries) {
        for (int failures = 0; ; failures++) {
            try {
                return request.get();
            } catch (MilepostException error) {
                if (failures + 1 == tries || !Waits.passes(error) || Thread.currentThread().isInterrupted()) throw error;
                if (!Waits.sleep(Waits.after(error, failures))) throw error;
            }
        }
    }
}
