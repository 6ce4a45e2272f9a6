package dev.milepost;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/**
 * A job to be created. Only the kind is required; {@code null} is the default of each other setting.
 *
 * @param kind what the job does; a worker's handler belongs to a kind
 * @param payload its input, which the codec converts to JSON, or a {@link Json.Text}; {@code null} is {@code {}}
 * @param key at most one job of a kind has a given key; a repeated call returns the existing job
 * @param queue its queue; {@code default} unless given
 * @param priority from 1 (first) to 4 (last); 2 unless given
 * @param group jobs of a group run one at a time, unless a limit allows more
 * @param startAt when it may start at the earliest
 * @param delay how long it waits before it may start, by the clock of the store; not together with {@code startAt}
 * @param maxAttempts the maximum number of attempts; 25 unless given
 * @param timeout the time limit of each attempt
 * @param id its id; only for calls in SQL
 * @param traceparent its parent span, in the format of W3C Trace Context; {@link Client#createMany} refuses it
 * @param onDuplicate what happens to the job that holds the key, such as {@code Map.of("action", "replace")}
 */
public record NewJob(
    String kind, Object payload, String key, String queue, Integer priority, String group, Instant startAt, Duration delay, Integer maxAttempts,
    Duration timeout, UUID id, String traceparent, Map<String, ?> onDuplicate) {

    public NewJob {
        Objects.requireNonNull(kind, "the kind of a job is missing");
    }

    /** Returns a job with default settings. The other methods return a copy with one setting more. */
    public static NewJob of(String kind, Object payload) {
        return new NewJob(kind, payload, null, null, null, null, null, null, null, null, null, null, null);
    }

    public NewJob key(String key) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob queue(String queue) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob priority(int priority) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob group(String group) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob startAt(Instant startAt) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob delay(Duration delay) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob maxAttempts(int maxAttempts) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob timeout(Duration timeout) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob id(UUID id) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob traceparent(String traceparent) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    public NewJob onDuplicate(Map<String, ?> onDuplicate) {
        return new NewJob(kind, payload, key, queue, priority, group, startAt, delay, maxAttempts, timeout, id, traceparent, onDuplicate);
    }

    /** Returns the body of a request that creates the job. */
    Map<String, Object> body(Codec codec) {
        if (id != null) throw new IllegalArgumentException("the HTTP API assigns the ids of jobs: use a key, or create the job in SQL");
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("kind", kind);
        body.put("payload", new Json.Text(payload == null ? "{}" : Codecs.encode(codec, payload, "the payload")));
        body.put("key", key);
        body.put("queue", queue);
        body.put("priority", priority);
        body.put("group", group);
        body.put("start_at", startAt == null ? null : startAt.toString());
        body.put("delay_ms", delay == null ? null : delay.toMillis());
        body.put("max_attempts", maxAttempts);
        body.put("timeout_ms", timeout == null ? null : timeout.toMillis());
        body.put("on_duplicate", onDuplicate);
        body.values().removeIf(Objects::isNull);
        return body;
    }
}
