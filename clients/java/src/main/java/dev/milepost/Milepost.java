package dev.milepost;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;

/**
 * The SQL functions of Milepost on PostgreSQL, called on a JDBC connection. Each call joins the transaction of its connection, and neither commits
 * nor closes it. Threads can share an instance.
 *
 * <p>Each method throws {@link StoreException} if the database refuses the call, and {@link Json.Malformed} if a payload cannot be converted to
 * JSON.
 */
public final class Milepost {
    private static final Duration GRACE = Duration.ofSeconds(10);

    private final Codec codec;

    /** Creates an instance that converts payloads with {@link Codec#records}. */
    public Milepost() {
        this(Codec.records());
    }

    public Milepost(Codec codec) {
        this.codec = codec;
    }

    /** Creates a job. */
    public Created enqueue(Connection connection, NewJob job) {
        return enqueueMany(connection, List.of(job)).get(0);
    }

    /** Creates jobs, all or none. The answers are in the order of the jobs. */
    public List<Created> enqueueMany(Connection connection, List<NewJob> jobs) {
        // Another function, so that jobs without a rule cost nothing more.
        boolean hasRules = jobs.stream().anyMatch(job -> job.onDuplicate() != null);
        String call = hasRules
            ? "select job_id, outcome from milepost.enqueue_many_by_key(on_duplicates => cast(cast(? as text[]) as jsonb[]),"
            : "select job_id, duplicate from milepost.enqueue_many(";
        Query query = Query.of(connection, call + """
                    kinds => cast(? as text[]), payloads => cast(cast(? as text[]) as jsonb[]), keys => cast(? as text[]),
                    queues => cast(? as text[]), priorities => cast(cast(? as text[]) as int[]),
                    groups => cast(? as text[]), run_ats => cast(cast(? as text[]) as timestamptz[]),
                    delays_ms => cast(cast(? as text[]) as bigint[]), max_attempts => cast(cast(? as text[]) as int[]),
                    timeouts_ms => cast(cast(? as text[]) as bigint[]), ids => cast(cast(? as text[]) as uuid[]),
                    traceparents => cast(? as text[]))""");
        if (hasRules) query = query.each(jobs, job -> job.onDuplicate() == null ? null : json(job.onDuplicate(), "on_duplicate"));
        return query.each(jobs, NewJob::kind).each(jobs, job -> json(job.payload(), "the payload")).each(jobs, NewJob::key).each(jobs, NewJob::queue)
            .each(jobs, NewJob::priority).each(jobs, NewJob::group).each(jobs, NewJob::startAt).each(jobs, job -> ms(job.delay()))
            .each(jobs, NewJob::maxAttempts).each(jobs, job -> ms(job.timeout())).each(jobs, NewJob::id).each(jobs, NewJob::traceparent)
            .all(hasRules ? Milepost::settled : Milepost::created);
    }

    /** Cancels a job, and gives its handler 10 s to stop. */
    public String cancel(Connection connection, UUID job, String reason) {
        return cancel(connection, job, reason, GRACE);
    }

    /**
     * Cancels a job. The account needs the role {@code milepost_worker}.
     *
     * @param reason for the job's history; can be {@code null}
     * @param grace how long a running handler may continue before its run is fenced
     * @return the new state, or {@code stop_requested} if the job runs
     */
    public String cancel(Connection connection, UUID job, String reason, Duration grace) {
        return Query.of(connection, "select milepost.cancel(cast(? as uuid), cast(? as text), cast(? as bigint))")
            .with(job).with(reason).with(grace.toMillis()).one(row -> row.getString(1));
    }

    /** Emits an event. */
    public Emitted emit(Connection connection, NewEvent event) {
        return emitMany(connection, List.of(event)).get(0);
    }

    /** Emits events, all or none. The answers are in the order of the events. */
    public List<Emitted> emitMany(Connection connection, List<NewEvent> events) {
        return Query.of(connection, """
                select event_id, aggregate_seq, duplicate from milepost.emit_many(cast(? as text[]), cast(? as text[]), cast(? as text[]),
                    payloads => cast(cast(? as text[]) as json[]), event_ids => cast(cast(? as text[]) as uuid[]),
                    aggregate_seqs => cast(cast(? as text[]) as bigint[]), headers => cast(cast(? as text[]) as jsonb[]),
                    gaps_allowed => cast(cast(? as text[]) as boolean[]))""")
            .each(events, NewEvent::aggregateType).each(events, NewEvent::aggregateId).each(events, NewEvent::type)
            .each(events, event -> event.payload() == null ? "{}" : json(event.payload(), "the payload")).each(events, NewEvent::id)
            .each(events, NewEvent::sequence).each(events, event -> headers(event.headers())).each(events, NewEvent::gapAllowed)
            .all(row -> new Emitted(row.getObject(1, UUID.class), row.getLong(2), row.getBoolean(3)));
    }

    /**
     * Returns whether a consumer receives an event for the first time, and records it.
     *
     * @throws IllegalStateException if the connection is in auto-commit mode
     */
    public boolean once(Connection connection, String consumer, UUID event) {
        requireTransaction(connection, "once");
        return Query.of(connection, "select milepost.once(cast(? as text), cast(? as uuid))").with(consumer).with(event).one(row -> row.getBoolean(1));
    }

    /**
     * Takes an event in if it is the next one of its aggregate. From this call to the end of the transaction, no other transaction can process
     * events of this aggregate for this consumer: process one aggregate per transaction.
     *
     * @throws IllegalStateException if the connection is in auto-commit mode
     */
    public Received receive(Connection connection, String consumer, Event event) {
        requireTransaction(connection, "receive");
        return Query.of(connection, """
                select verdict, more from milepost.receive(cast(? as text), cast(? as text), cast(? as text), cast(? as bigint), cast(? as uuid),
                    cast(? as text), cast(? as json), headers => cast(? as jsonb), emitted_at => cast(? as timestamptz))""")
            .with(consumer).with(event.aggregateType()).with(event.aggregateId()).with(event.sequence()).with(event.id())
            .with(event.type()).with(event.payload()).with(headers(event.headers())).with(event.emittedAt())
            .one(row -> new Received(Received.Verdict.valueOf(row.getString(1).toUpperCase(Locale.ROOT)), row.getBoolean(2)));
    }

    /**
     * Returns the next event of an aggregate if the inbox has kept it, and records it as processed: apply it in this transaction.
     *
     * @throws IllegalStateException if the connection is in auto-commit mode
     */
    public Optional<Event> nextParked(Connection connection, String consumer, String aggregateType, String aggregateId) {
        requireTransaction(connection, "nextParked");
        return Query.of(connection, """
                select event_id, aggregate_seq, event_type, payload, headers, emitted_at
                from milepost.next_parked(cast(? as text), cast(? as text), cast(? as text))""")
            .with(consumer).with(aggregateType).with(aggregateId)
            .all(row -> event(row, aggregateType, aggregateId)).stream().findFirst();
    }

    /** Starts a batch. */
    public Created startBatch(Connection connection, NewBatch batch) {
        return Query.of(connection, """
                select batch_id, duplicate from milepost.start_batch(cast(? as text), key => cast(? as text), input => cast(? as jsonb),
                    version => cast(? as text), input_checked => cast(? as boolean), id => cast(? as uuid),
                    nominal_at => cast(? as timestamptz), traceparent => cast(? as text), nominal_zone => cast(? as text))""")
            .with(batch.dag()).with(batch.key()).with(batch.input() == null ? "{}" : json(batch.input(), "the input")).with(batch.version())
            .with(batch.inputChecked()).with(batch.id()).with(batch.nominalAt()).with(batch.traceparent()).with(batch.nominalZone())
            .one(Milepost::created);
    }

    /**
     * Sends a signal to a batch: the task that waits for it succeeds, with the payload as its output. A second signal for the batch with the same id
     * changes nothing.
     *
     * @param id {@code null}: a new one
     * @return {@code accepted}, {@code duplicate}, or {@code late} if the task has ended
     */
    public String signal(Connection connection, UUID batch, String name, Object payload, String id) {
        return Query.of(connection, """
                select milepost.signal(cast(? as uuid), cast(? as text), cast(? as jsonb), cast(? as text))""")
            .with(batch).with(name).with(json(payload, "the payload")).with(id).one(row -> row.getString(1));
    }

    /** Starts a run of a bulk job. */
    public Created startBulk(Connection connection, NewBulkRun run) {
        return Query.of(connection, """
                select job_id, duplicate from milepost.start_bulk(cast(? as text), cast(? as jsonb), key => cast(? as text),
                    run_at => cast(? as timestamptz), priority => cast(? as int), traceparent => cast(? as text))""")
            .with(run.name()).with(run.parameters() == null ? "{}" : json(run.parameters(), "the parameters")).with(run.key())
            .with(run.startAt()).with(run.priority()).with(run.traceparent()).one(Milepost::created);
    }

    /**
     * Ends a running job in the transaction of its effects: after the commit, it has succeeded with this result, and what its handler returns
     * changes nothing. If the handler returns although the transaction was not committed, the attempt fails with the code {@code not_committed}.
     * The account needs the role {@code milepost_worker}.
     *
     * @throws StoreException.Fenced if the job no longer runs with this token: roll back
     * @throws IllegalStateException if the connection is in auto-commit mode
     */
    public void complete(Connection connection, Job<?> job, Object result) {
        job.completes();
        complete(connection, job.id(), job.runToken(), result);
    }

    /** Does the same for a handler that has received the id and the run token in another way, such as in headers of an HTTP request. */
    public void complete(Connection connection, UUID job, int runToken, Object result) {
        requireTransaction(connection, "complete");
        boolean ended = Query.of(connection, "select milepost.complete(cast(? as uuid), cast(? as int), cast(? as jsonb))")
            .with(job).with(runToken).with(json(result, "the result")).one(row -> row.getBoolean(1));
        if (!ended) throw new StoreException.Fenced("job " + job + " no longer runs with the token " + runToken + "; roll back");
    }

    private String json(Object value, String what) {
        return value == null ? null : Codecs.encode(codec, value, what);
    }

    private static String headers(Map<String, String> headers) {
        return headers == null ? null : Json.write(headers);
    }

    private static Long ms(Duration duration) {
        return duration == null ? null : duration.toMillis();
    }

    private static Created created(ResultSet row) throws SQLException {
        return new Created(row.getObject(1, UUID.class), row.getBoolean(2));
    }

    private static Created settled(ResultSet row) throws SQLException {
        String outcome = row.getString(2);
        return new Created(row.getObject(1, UUID.class), !outcome.equals("created"), outcome);
    }

    private static Event event(ResultSet row, String aggregateType, String aggregateId) throws SQLException {
        Map<String, String> headers = new HashMap<>();
        String json = row.getString(5);
        if (json != null && Json.read(json) instanceof Map<?, ?> read)
            read.forEach((name, value) -> headers.put((String) name, String.valueOf(value)));
        OffsetDateTime emittedAt = row.getObject(6, OffsetDateTime.class);
        return new Event(row.getObject(1, UUID.class), aggregateType, aggregateId, row.getLong(2), row.getString(3), row.getString(4), headers,
            emittedAt == null ? null : emittedAt.toInstant());
    }

    /** In auto-commit mode, the call would be committed without the effects that belong to it. */
    private static void requireTransaction(Connection connection, String call) {
        try {
            if (!connection.getAutoCommit()) return;
        } catch (SQLException error) {
            throw StoreException.of(error);
        }
        throw new IllegalStateException(call + " needs a transaction: call setAutoCommit(false) on the connection before the first write");
    }
}
