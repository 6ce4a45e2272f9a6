package dev.milepost;

import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;

/**
 * A running job, as its handler receives it.
 *
 * <p>When a job must stop, {@link #stopRequested} returns {@code true} and the thread of its handler is interrupted.
 *
 * @param <P> the type of the payload
 */
public final class Job<P> {
    /** Why a run must stop, and the outcome to report then, if any. */
    enum Reason {
        CANCEL("canceled"), ABORT("aborted"), TIMEOUT(null), LOST(null);

        final String outcome;

        Reason(String outcome) {
            this.outcome = outcome;
        }
    }

    /** The id of the worker that claimed it, and the run as the server identifies it. */
    final long holder;

    final String run;
    private final Map<?, ?> claimed;
    private final UUID id;
    private final Worker worker;
    private P payload;

    // State of the run, guarded by the lock of the worker; `reason` and `completes` are also read without it.
    volatile Reason reason;
    /** Whether the handler has called {@link Milepost#complete}. */
    volatile boolean completes;
    /** Whether the end is decided. */
    boolean ended;
    /** Whether the end is reported, or must not be. */
    boolean reported;
    /** Whether an open transaction of another program holds the end. */
    boolean held;
    /** Whether the handler has returned. */
    boolean returned;
    /** The thread of the handler while it runs. */
    Thread thread;

    Job(Worker worker, long holder, Map<?, ?> claimed) {
        this.worker = worker;
        this.holder = holder;
        this.claimed = claimed;
        this.id = Answer.uuid(claimed, "id");
        this.run = Answer.part(claimed, "run", String.class);
        for (String name : new String[] {"kind", "queue"}) Answer.part(claimed, name, String.class);
        for (String name : new String[] {"attempt", "max_attempts", "run_token"}) Answer.part(claimed, name, Long.class);
    }

    /** Returns its id: a good key for requests to other services. */
    public UUID id() {
        return id;
    }

    public String kind() {
        return (String) claimed.get("kind");
    }

    public String queue() {
        return (String) claimed.get("queue");
    }

    /** Returns its input. */
    public P payload() {
        return payload;
    }

    /** Returns the number of this attempt, from 1. */
    public int attempt() {
        return number("attempt");
    }

    public int maxAttempts() {
        return number("max_attempts");
    }

    /** Returns the run token, for {@link Milepost#complete}. */
    public int runToken() {
        return number("run_token");
    }

    /** Returns the time limit of the attempt. */
    public Optional<Duration> timeout() {
        return claimed.get("timeout_ms") instanceof Long ms ? Optional.of(Duration.ofMillis(ms)) : Optional.empty();
    }

    public Optional<String> group() {
        return text("group");
    }

    /** Returns the id of the batch whose task it is. */
    public Optional<UUID> batch() {
        return text("batch").map(UUID::fromString);
    }

    public Instant createdAt() {
        return text("created_at").map(Job::time).orElseThrow();
    }

    /** Returns the tick of the schedule that created the job, or the tick of its batch. */
    public Optional<Instant> nominalAt() {
        return text("nominal_at").map(Job::time);
    }

    /** Returns its parent span, in the format of W3C Trace Context. */
    public Optional<String> traceparent() {
        return text("traceparent");
    }

    /**
     * Returns the last checkpoint of an earlier attempt.
     *
     * @throws Json.Malformed if it does not fit the type
     */
    public <T> Optional<T> checkpoint(Class<T> type) {
        Object checkpoint = claimed.get("checkpoint");
        return checkpoint == null ? Optional.empty()
            : Optional.of(Codecs.decode(worker.client.codec(), Json.write(checkpoint), type, "the checkpoint"));
    }

    /** Returns whether the job must stop. Long-running handlers should read this or call {@link #check}. */
    public boolean stopRequested() {
        return reason != null;
    }

    /** @throws JobStopped if the job must stop */
    public void check() {
        if (reason != null) throw new JobStopped(reason.name().toLowerCase(java.util.Locale.ROOT));
    }

    /**
     * Reports progress.
     *
     * @param total the total number of units; {@code null}: unknown
     * @param message a text for users; {@code null}: none
     * @throws JobStopped if the job has left this run
     */
    public void progress(long done, Long total, String message) {
        Map<String, Object> progress = new LinkedHashMap<>();
        progress.put("done", done);
        progress.put("total", total);
        progress.put("message", message);
        progress.values().removeIf(Objects::isNull);
        report("progress", progress);
    }

    /**
     * Stores a checkpoint, which the next attempt receives.
     *
     * @param checkpoint a value that the codec converts to JSON, or a {@link Json.Text}
     * @throws JobStopped if the job has left this run
     */
    public void saveCheckpoint(Object checkpoint) {
        report("checkpoint", new Json.Text(Codecs.encode(worker.client.codec(), checkpoint, "the checkpoint")));
    }

    private void report(String name, Object value) {
        if (reason == Reason.LOST || reason == Reason.TIMEOUT) check();
        try {
            if (worker.reportRun(this, Map.of("run", run, name, value))) return;
        } catch (UnreachableException error) {
            check(); // A stop interrupts the request.
            throw error;
        }
        worker.requestStop(this, Reason.LOST);
        check();
    }

    void completes() {
        completes = true;
    }

    /** Converts the payload. Its handler is called only after this. */
    void read(Class<P> type) {
        payload = Codecs.decode(worker.client.codec(), Json.write(claimed.get("payload")), type, "the payload");
    }

    private int number(String name) {
        return ((Long) claimed.get(name)).intValue();
    }

    private Optional<String> text(String name) {
        return claimed.get(name) instanceof String text ? Optional.of(text) : Optional.empty();
    }

    private static Instant time(String text) {
        return OffsetDateTime.parse(text).toInstant();
    }
}
