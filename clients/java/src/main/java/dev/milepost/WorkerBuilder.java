package dev.milepost;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Settings of a {@link Worker}. */
public final class WorkerBuilder {
    /**
     * A handler and the type of its payloads.
     *
     * @param <P> that type
     */
    record Registered<P>(Class<P> type, Handler<P> handler) {}

    final Client client;
    final Map<String, Registered<?>> handlers = new LinkedHashMap<>();
    final Map<String, Backoff> backoffs = new LinkedHashMap<>();
    List<String> queues = List.of("default");
    int concurrency = 4;
    Duration lease = Duration.ofSeconds(15);
    Duration wait = Duration.ofSeconds(5);
    String name = hostName() + "-" + ProcessHandle.current().pid();

    WorkerBuilder(Client client) {
        this.client = client;
    }

    /**
     * Sets the handler of a kind.
     *
     * @param type the type of its payloads, to which the client's codec converts them; {@code Json.Text.class}: the JSON
     */
    public <P> WorkerBuilder handle(String kind, Class<P> type, Handler<P> handler) {
        handlers.put(kind, new Registered<>(type, handler));
        return this;
    }

    /** Sets how long jobs of a kind wait after a failed attempt. The others wait 1 s, then 2 s, 4 s and so on up to an hour. */
    public WorkerBuilder backoff(String kind, Backoff backoff) {
        backoffs.put(kind, backoff);
        return this;
    }

    /** Sets the queues; {@code default} unless set. */
    public WorkerBuilder queues(String... queues) {
        this.queues = List.of(queues);
        return this;
    }

    /** Sets the maximum number of jobs that run at the same time; 4 unless set. */
    public WorkerBuilder concurrency(int concurrency) {
        this.concurrency = concurrency;
        return this;
    }

    /** Sets the time after which the jobs of a worker that sends no heartbeat are retried; 15 s unless set. */
    public WorkerBuilder lease(Duration lease) {
        this.lease = lease;
        return this;
    }

    /** Sets how long a claim waits for jobs, and therefore how long an idle worker may take to stop; 5 s unless set, at most 30 s. */
    public WorkerBuilder waitForJobs(Duration wait) {
        this.wait = wait;
        return this;
    }

    /** Sets a name for operators; host name and process id unless set. */
    public WorkerBuilder name(String name) {
        this.name = name;
        return this;
    }

    /** @throws IllegalArgumentException if there is no handler, no queue, or no place for a job */
    public Worker build() {
        if (handlers.isEmpty()) throw new IllegalArgumentException("a worker needs a handler: call handle");
        if (queues.isEmpty() || concurrency < 1) throw new IllegalArgumentException("a worker needs a queue and a concurrency of at least 1");
        return new Worker(this);
    }

    /** Returns the queues and kinds, as the first members of a request. */
    Map<String, Object> serves() {
        Map<String, Object> body = new HashMap<>();
        body.put("queues", queues);
        body.put("kinds", List.copyOf(handlers.keySet()));
        return body;
    }

    Map<String, Object> backoffBodies() {
        Map<String, Object> bodies = new HashMap<>();
        backoffs.forEach((kind, backoff) -> bodies.put(kind, backoff.body()));
        return bodies;
    }

    private static String hostName() {
        try {
            return java.net.InetAddress.getLocalHost().getHostName();
        } catch (java.net.UnknownHostException unknown) {
            return "java";
        }
    }
}
