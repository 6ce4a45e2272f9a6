package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/** Tests of the SQL functions over JDBC, on the store at MILEPOST_STORE. */
@EnabledIfEnvironmentVariable(named = "MILEPOST_STORE", matches = "postgres.*")
class SqlTest extends Workplace {
    private record Paid(int cents) {}

    private final String name = UUID.randomUUID().toString();

    private NewJob job(String to) {
        return NewJob.of("mail", new Mail(to)).queue(queue);
    }

    @Test
    void a_job_is_created_if_and_only_if_the_transaction_is_committed() throws Exception {
        Connection connection = connect();
        UUID lost = MILEPOST.enqueue(connection, job("ada")).id();
        connection.rollback();
        UUID kept = MILEPOST.enqueue(connection, job("grace")).id();
        connection.commit();
        assertEquals(new Mail("grace"), healthy.job(kept).payload(Mail.class, RECORDS));
        assertEquals(404, assertThrows(ProblemException.class, () -> healthy.job(lost)).status());
    }

    @Test
    void a_waiting_job_is_replaced() throws Exception {
        Connection connection = connect();
        NewJob job = job("ada").key(name).onDuplicate(Map.of("action", "replace"));
        Created first = MILEPOST.enqueue(connection, job);
        List<Created> again = MILEPOST.enqueueMany(connection, List.of(job, job("eve")));
        connection.commit();
        assertEquals("created", first.outcome());
        assertEquals(new Created(first.id(), true, "replaced"), again.get(0));
        assertEquals("created", again.get(1).outcome());
        assertEquals(new Created(first.id(), true, "replaced"), healthy.create(job));
    }

    @Test
    void a_job_has_the_settings_of_the_call() throws Exception {
        Connection connection = connect();
        UUID id = UUID.randomUUID();
        Instant startAt = Instant.parse("2099-12-31T22:59:59.123456Z");
        String parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assertEquals(new Created(id, false), MILEPOST.enqueue(connection, job("ada").key(name).priority(3).startAt(startAt).maxAttempts(7)
            .timeout(Duration.ofSeconds(90)).id(id).traceparent(parent)));
        Created later = MILEPOST.enqueue(connection, NewJob.of("mail", null).queue(queue).delay(Duration.ofDays(2)));
        Created grouped = MILEPOST.enqueue(connection, job("ada").group(name));
        connection.commit();
        Map<String, Object> shown = healthy.job(id).fields();
        assertEquals(List.of(name, 3L, 7L, parent, startAt.toString()), List.of(shown.get("key"), shown.get("priority"),
            shown.get("max_attempts"), shown.get("traceparent"), shown.get("ready_at")));
        Map<String, Object> delayed = healthy.job(later.id()).fields();
        assertEquals(Map.of(), delayed.get("payload"));
        assertEquals(name, healthy.job(grouped.id()).fields().get("group"));
        Duration wait = Duration.between(Instant.parse((String) delayed.get("created_at")), Instant.parse((String) delayed.get("ready_at")));
        assertEquals(2 * 86_400, wait.toSeconds());
    }

    @Test
    void many_jobs_are_created_in_order_and_once_under_their_keys() throws Exception {
        Connection connection = connect();
        List<NewJob> jobs = java.util.stream.IntStream.range(0, 1_000).mapToObj(n -> job("é\"\\{},null " + n).key(name + n)).toList();
        List<Created> created = MILEPOST.enqueueMany(connection, jobs);
        List<Created> again = MILEPOST.enqueueMany(connection, jobs);
        connection.commit();
        assertEquals(created.stream().map(Created::id).toList(), again.stream().map(Created::id).toList());
        assertTrue(created.stream().noneMatch(Created::duplicate) && again.stream().allMatch(Created::duplicate));
        assertEquals(new Mail("é\"\\{},null 17"), healthy.job(created.get(17).id()).payload(Mail.class, RECORDS));
        assertEquals(List.of(), MILEPOST.enqueueMany(connection, List.of()));
    }

    @Test
    void a_job_is_canceled_with_a_reason() throws Exception {
        Connection connection = connect();
        UUID id = create("k");
        assertEquals("canceled", MILEPOST.cancel(connection, id, "the customer called"));
        connection.rollback();
        assertEquals("pending", healthy.job(id).state());
        MILEPOST.cancel(connection, id, null);
        connection.commit();
        assertEquals("canceled", healthy.job(id).state());
    }

    @Test
    void events_are_emitted_in_order_and_once_under_their_ids() throws Exception {
        Connection connection = connect();
        UUID id = UUID.randomUUID();
        var event = NewEvent.of("order", name, "order.paid", new Json.Text("{\"cents\":  1200}")).id(id).headers(Map.of("tenant", "acme"));
        assertEquals(new Emitted(id, 1, false), MILEPOST.emit(connection, event));
        List<Emitted> many = MILEPOST.emitMany(connection, List.of(event, NewEvent.of("order", name, "order.sent", new Paid(5)), NewEvent.of("order", name, "x", null)));
        assertEquals(List.of(1L, 2L, 3L), many.stream().map(Emitted::sequence).toList());
        assertEquals(List.of(true, false, false), many.stream().map(Emitted::duplicate).toList());
        try (var statement = connection.prepareStatement(
            "select payload::text, headers->>'tenant' from milepost.event where aggregate_id = ? order by aggregate_seq")) {
            statement.setString(1, name);
            var rows = statement.executeQuery();
            assertTrue(rows.next());
            assertEquals(List.of("{\"cents\":  1200}", "acme"), List.of(rows.getString(1), rows.getString(2)));
            assertTrue(rows.next());
            assertEquals("{\"cents\":5}", rows.getString(1));
        }
        assertEquals(new Emitted(MILEPOST.emit(connection, event.id(id)).id(), 1, true), MILEPOST.emit(connection, event));
        assertEquals(7, MILEPOST.emit(connection, NewEvent.of("order", name, "x", null).sequence(7).gapAllowed(true)).sequence());
    }

    private Event event(long sequence) {
        return new Event(UUID.randomUUID(), "order", name, sequence, "order.paid", "{\"cents\":" + sequence + "}", Map.of("tenant", "acme"),
            Instant.parse("2026-05-01T10:15:00Z"));
    }

    @Test
    void an_inbox_applies_each_event_once_and_in_order() throws Exception {
        Connection connection = connect();
        Event first = event(1);
        Event second = event(2);
        assertEquals(new Received(Received.Verdict.PARKED, false), MILEPOST.receive(connection, name, second));
        assertEquals(Optional.empty(), MILEPOST.nextParked(connection, name, "order", name));
        assertEquals(new Received(Received.Verdict.APPLY, true), MILEPOST.receive(connection, name, first));
        assertEquals(Optional.of(second), MILEPOST.nextParked(connection, name, "order", name));
        assertEquals(Optional.empty(), MILEPOST.nextParked(connection, name, "order", name));
        assertEquals(Received.Verdict.DUPLICATE, MILEPOST.receive(connection, name, first).verdict());
        assertEquals(new Paid(2), second.payload(Paid.class, RECORDS));
        assertFalse(MILEPOST.receive(connection, name, second).apply());
        // The verdict for another event with the sequence of the last one.
        assertEquals(Received.Verdict.LATE, MILEPOST.receive(connection, name, event(2)).verdict());
    }

    @Test
    void once_is_true_for_the_first_time_and_again_after_a_rollback() throws Exception {
        Connection connection = connect();
        UUID id = UUID.randomUUID();
        assertTrue(MILEPOST.once(connection, name, id));
        assertFalse(MILEPOST.once(connection, name, id));
        connection.rollback();
        assertTrue(MILEPOST.once(connection, name, id));
    }

    @Test
    void a_batch_is_started_once_under_its_key_and_for_its_day() throws Exception {
        healthy.ask("POST", "/v1/dags", Map.of("name", name, "tasks", Map.of("a", Map.of("kind", name, "payload", "${ input.n } on ${ tick.date }"))));
        Connection connection = connect();
        var batch = NewBatch.of(name, Map.of("n", 7)).key(name).nominalAt(Instant.parse("2026-11-21T23:30:00Z"), ZoneId.of("Europe/Berlin"));
        Created first = MILEPOST.startBatch(connection, batch);
        assertEquals(new Created(first.id(), true), MILEPOST.startBatch(connection, batch));
        UUID id = UUID.randomUUID();
        assertEquals(new Created(id, false), MILEPOST.startBatch(connection, NewBatch.of(name, null).id(id).nominalAt(Instant.EPOCH, ZoneOffset.UTC)));
        connection.commit();
        until("a worker has created the job of the task", () -> {
            var jobs = (List<?>) ((Map<?, ?>) healthy.ask("GET", "/v1/jobs?kind=" + name, null)).get("items");
            return jobs.stream().map(job -> UUID.fromString((String) ((Map<?, ?>) job).get("id")))
                .anyMatch(job -> "7 on 2026-11-22".equals(healthy.job(job).fields().get("payload")));
        });
    }

    @Test
    void a_bulk_job_is_started_with_parameters(@TempDir Path folder) throws Exception {
        String bulk = "java_" + name.replace("-", "");
        Connection connection = connect();
        try (var statement = connection.createStatement()) {
            statement.execute("create table " + bulk + " (id bigint primary key, done text)");
            statement.execute("insert into " + bulk + " select generate_series(1, 100)");
        }
        connection.commit();
        Files.writeString(folder.resolve("milepost.toml"), """
            store = "%s"
            [bulk."%s"]
            queue = "%s"
            source = "select id from %s where id > :cursor order by id limit :limit"
            key = ["id"]
            apply = "update %s t set done = :word from chunk where t.id = chunk.id"
            """.formatted(System.getenv("MILEPOST_STORE"), bulk, queue, bulk, bulk));
        String program = Optional.ofNullable(System.getenv("MILEPOST_PROGRAM")).orElse("milepost");
        Process worker = new ProcessBuilder(program, "work").directory(folder.toFile()).redirectErrorStream(true).redirectOutput(folder.resolve("log").toFile()).start();
        atTheEnd(worker::destroy);
        UUID run = until("the worker has stored the bulk job", () -> {
            assertTrue(worker.isAlive(), () -> "the worker has ended: " + log(folder));
            try {
                UUID id = MILEPOST.startBulk(connection, NewBulkRun.of(bulk, Map.of("word", "yes")).key(name)).id();
                connection.commit();
                return id;
            } catch (StoreException.NotFound notYet) {
                connection.rollback();
                return null;
            }
        });
        assertEquals(new Created(run, true), MILEPOST.startBulk(connection, NewBulkRun.of(bulk, Map.of("word", "yes")).key(name)));
        assertEquals(new Created(run, true), healthy.startBulk(NewBulkRun.of(bulk, Map.of("word", "yes")).key(name)));
        connection.commit();
        ended(run);
        try (var statement = connection.createStatement(); var rows = statement.executeQuery("select count(*) from " + bulk + " where done = 'yes'")) {
            assertTrue(rows.next());
            assertEquals(100, rows.getInt(1));
        }
    }

    private static String log(Path folder) {
        try {
            return Files.readString(folder.resolve("log"));
        } catch (java.io.IOException none) {
            return "";
        }
    }

    private StoreException refused(Class<? extends StoreException> type, String state, Connection connection, Runnable call) throws SQLException {
        StoreException refused = assertThrows(type, call::run);
        assertEquals(Optional.of(state), refused.sqlState());
        assertInstanceOf(SQLException.class, refused.getCause());
        connection.rollback();
        return refused;
    }

    @Test
    void errors_of_the_database_are_mapped() throws Exception {
        Connection c = connect();
        var refused = StoreException.Refused.class;
        var wrong = StoreException.WrongState.class;
        assertTrue(refused(refused, "MP001", c, () -> MILEPOST.enqueueMany(c, List.of(job("a"), NewJob.of("", null)))).getMessage().contains("job 1 of the call"));
        refused(StoreException.NotFound.class, "MP002", c, () -> MILEPOST.cancel(c, UUID.randomUUID(), null));
        UUID canceled = create("k");
        healthy.operate(canceled, "cancel", Map.of());
        assertEquals(Optional.of("canceled"), refused(wrong, "MP003", c, () -> MILEPOST.cancel(c, canceled, null)).detail());
        refused(StoreException.NotFound.class, "MP007", c, () -> MILEPOST.startBulk(c, NewBulkRun.of(name, null)));
        refused(StoreException.NotFound.class, "MP010", c, () -> MILEPOST.startBatch(c, NewBatch.of(name, null)));
        assertEquals(Optional.of("name"), refused(refused, "MP015", c, () -> MILEPOST.emit(c, NewEvent.of("", "1", "x", null))).detail());
        UUID taken = MILEPOST.emit(c, NewEvent.of("order", name, "x", null)).id();
        c.commit();
        assertEquals(Optional.of("gap 1"), refused(StoreException.EventConflict.class, "MP016", c,
            () -> MILEPOST.emit(c, NewEvent.of("order", name, "x", null).sequence(5))).detail());
        refused(StoreException.EventConflict.class, "MP017", c, () -> MILEPOST.emit(c, NewEvent.of("order", name, "y", null).id(taken)));
        refused(refused, "MP018", c, () -> MILEPOST.once(c, "", taken));
        refused(refused, "22P05", c, () -> MILEPOST.enqueue(c, job("a\0b")));
        UUID id = create("k");
        refused(StoreException.DuplicateId.class, "23505", c, () -> MILEPOST.enqueue(c, NewJob.of("k", null).id(id)));
    }

    @Test
    void a_serialization_failure_asks_to_repeat_the_transaction() throws Exception {
        Connection one = connect();
        Connection other = connect();
        one.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        try (var statement = one.createStatement()) {
            statement.execute("select 1 from milepost.event limit 1");
        }
        MILEPOST.emit(other, NewEvent.of("order", name, "x", null));
        other.commit();
        refused(StoreException.RepeatTransaction.class, "40001", one, () -> MILEPOST.emit(one, NewEvent.of("order", name, "x", null)));
    }

    @Test
    void a_database_without_milepost_is_recognized() throws Exception {
        Connection connection = connect();
        String other = "java_" + name.replace("-", "_");
        connection.setAutoCommit(true);
        try (var statement = connection.createStatement()) {
            statement.execute("create database " + other);
        }
        atTheEnd(() -> {
            try (var statement = connection.createStatement()) {
                statement.execute("drop database " + other + " with (force)");
            }
        });
        try (Connection empty = DriverManager.getConnection(jdbcUrl(System.getenv("MILEPOST_STORE")).replaceFirst("/[^/?]+\\?", "/" + other + "?"))) {
            var missing = assertThrows(StoreException.NotInstalled.class, () -> MILEPOST.enqueue(empty, job("a")));
            assertTrue(missing.getMessage().endsWith("; run `milepost migrate`"), missing.getMessage());
        }
    }

    @Test
    void an_account_without_a_role_gets_an_error_with_the_roles() throws Exception {
        Connection connection = connect();
        try (var statement = connection.createStatement()) {
            statement.execute("set local role pg_monitor");
        }
        var refused = refused(StoreException.NotPermitted.class, "42501", connection, () -> MILEPOST.enqueue(connection, job("a")));
        assertEquals("permission denied for schema milepost; grant the account milepost_app or milepost_worker", refused.getMessage());
    }

    @Test
    void calls_that_belong_to_other_writes_need_a_transaction() throws Exception {
        Connection connection = connect();
        connection.setAutoCommit(true);
        for (Runnable call : List.<Runnable>of(
            () -> MILEPOST.once(connection, name, UUID.randomUUID()), () -> MILEPOST.receive(connection, name, event(1)),
            () -> MILEPOST.nextParked(connection, name, "order", name), () -> MILEPOST.complete(connection, UUID.randomUUID(), 1, null))) {
            assertTrue(assertThrows(IllegalStateException.class, call::run).getMessage().contains("needs a transaction: call setAutoCommit(false)"));
        }
        assertNotEquals(null, MILEPOST.enqueue(connection, job("a")).id());
    }

    @Test
    void a_closed_connection_is_an_error_of_the_store() throws Exception {
        Connection connection = connect();
        connection.close();
        assertEquals(StoreException.class, assertThrows(StoreException.class, () -> MILEPOST.enqueue(connection, job("a"))).getClass());
    }
}
