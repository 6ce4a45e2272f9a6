package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** Tests of jobs that end in the transaction of their effects. */
@EnabledIfEnvironmentVariable(named = "MILEPOST_STORE", matches = "postgres.*")
class TransactionTest extends Workplace {
    private final String table = "java_" + UUID.randomUUID().toString().replace("-", "");
    private Connection connection;

    @BeforeEach
    void createTable() throws SQLException {
        connection = connect();
        execute(connection, "create table " + table + " (job uuid, attempt int)");
        connection.commit();
    }

    @AfterEach
    void dropTable() throws SQLException {
        connection.rollback();
        execute(connection, "drop table " + table);
        connection.commit();
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private void write(Connection connection, Job<?> job) throws SQLException {
        execute(connection, "insert into " + table + " values ('" + job.id() + "', " + job.attempt() + ")");
    }

    /** Returns the attempts whose effects are stored. */
    private List<Integer> effects(UUID job) throws SQLException {
        List<Integer> attempts = new CopyOnWriteArrayList<>();
        try (var statement = connection.createStatement();
            var rows = statement.executeQuery("select attempt from " + table + " where job = '" + job + "' order by attempt")) {
            while (rows.next()) attempts.add(rows.getInt(1));
        }
        connection.commit();
        return attempts;
    }

    private static Connection inTransaction() throws SQLException {
        Connection own = DriverManager.getConnection(jdbcUrl(System.getenv("MILEPOST_STORE")));
        own.setAutoCommit(false);
        return own;
    }

    private void work(Handler<Object> handler, Duration lease) {
        var soon = new Backoff(Duration.ofMillis(100), Duration.ofMillis(100), 0);
        runWorker(healthy, worker -> worker.handle("k", Object.class, handler).backoff("k", soon).lease(lease));
    }

    @Test
    void the_effects_and_the_end_are_stored_together() throws Exception {
        List<LogRecord> records = logged();
        work(job -> {
            try (Connection own = inTransaction()) {
                write(own, job);
                MILEPOST.complete(own, job, Map.of("stored", true));
                assertEquals("running", healthy.job(job.id()).state());
                assertEquals(List.of(), effects(job.id()));
                own.commit();
            }
            return "ignored";
        }, Duration.ofSeconds(60));
        UUID job = create("k");
        assertEquals(Map.of("stored", true), result(job, Object.class));
        assertEquals(List.of(1), effects(job));
        // A second job: the report of the first one's end was answered before it is claimed, or at least its outcome has not changed.
        ended(create("k"));
        assertEquals("succeeded", healthy.job(job).state());
        assertEquals(Arrays.asList((Object) null), attempts(job));
        assertFalse(records.stream().anyMatch(one -> one.getMessage().contains(job.toString())), "nothing is logged");
    }

    @Test
    void neither_is_stored_if_the_transaction_is_rolled_back() throws Exception {
        work(job -> {
            try (Connection own = inTransaction()) {
                write(own, job);
                MILEPOST.complete(own, job, null);
                if (job.attempt() == 1) throw new IllegalStateException("after complete, before the commit");
                own.commit();
            }
            return null;
        }, Duration.ofSeconds(60));
        UUID job = create("k");
        ended(job);
        assertEquals(List.of(2), effects(job));
        assertEquals(Arrays.asList("IllegalStateException", null), attempts(job));
    }

    @Test
    void a_forgotten_commit_fails_the_attempt() throws Exception {
        List<LogRecord> records = logged();
        work(job -> {
            try (Connection own = inTransaction()) {
                write(own, job);
                MILEPOST.complete(own, job, null);
                if (job.attempt() == 2) own.commit();
            }
            return null;
        }, Duration.ofSeconds(60));
        UUID job = create("k");
        ended(job);
        assertEquals(List.of(2), effects(job));
        assertEquals(Arrays.asList("not_committed", null), attempts(job));
        String line = "job " + job + " (k): attempt 1 of 25 failed; another attempt follows: not_committed: the handler has called complete, and its transaction was "
            + "not committed";
        until("the failure is logged", () -> records.stream().anyMatch(one -> one.getMessage().equals(line)));
    }

    @Test
    void an_exception_after_the_commit_changes_nothing() throws Exception {
        List<LogRecord> records = logged();
        work(job -> {
            try (Connection own = inTransaction()) {
                MILEPOST.complete(own, job, 1);
                own.commit();
            }
            throw new IllegalStateException("too late");
        }, Duration.ofSeconds(60));
        UUID job = create("k");
        until("the end is ignored", () -> records.stream().anyMatch(one -> one.getMessage().startsWith("job " + job + " (k): the end of attempt 1 was ignored")));
        assertEquals(1, result(job, Integer.class));
    }

    @Test
    void a_run_that_has_lost_its_job_cannot_complete_it() throws Exception {
        var letGo = new CountDownLatch(1);
        List<Throwable> caught = new CopyOnWriteArrayList<>();
        work(job -> {
            try (Connection own = inTransaction()) {
                write(own, job);
                letGo.await();
                MILEPOST.complete(own, job, null);
                own.commit();
            } catch (StoreException.Fenced fenced) {
                caught.add(fenced);
                throw fenced;
            }
            return null;
        }, Duration.ofSeconds(60));
        UUID job = create("k");
        ended(job, "running");
        healthy.operate(job, "cancel", Map.of("grace_ms", 0));
        ended(job, "canceled");
        letGo.countDown();
        until("the completion is refused", () -> !caught.isEmpty());
        assertEquals("job " + job + " no longer runs with the token 1; roll back", caught.get(0).getMessage());
        assertEquals(List.of(), effects(job));
        assertEquals("canceled", healthy.job(job).state());
    }

    @Test
    void an_end_whose_transaction_is_still_open_waits_for_it() throws Exception {
        Connection own = connect();
        work(job -> {
            write(own, job);
            MILEPOST.complete(own, job, 1);
            return null; // Another thread commits later.
        }, Duration.ofSeconds(60));
        UUID job = create("k");
        until("the handler has called complete", () -> healthy.job(job).state().equals("running"));
        Thread.sleep(1_500);
        assertEquals("running", healthy.job(job).state());
        own.commit();
        assertEquals(1, result(job, Integer.class));
        assertEquals(List.of(1), effects(job));
        assertTrue(attempts(job).equals(Arrays.asList((Object) null)));
    }
}
