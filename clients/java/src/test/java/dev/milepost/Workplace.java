package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertFalse;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.UnaryOperator;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayNameGeneration;
import org.junit.jupiter.api.DisplayNameGenerator;

/** Base of tests that create and run jobs in a queue of the server at MILEPOST_URL. */
@DisplayNameGeneration(DisplayNameGenerator.ReplaceUnderscores.class)
abstract class Workplace {
    static final String URL = Objects.requireNonNull(System.getenv("MILEPOST_URL"), "MILEPOST_URL is not set");
    static final Milepost MILEPOST = new Milepost();
    static final Codec RECORDS = Codec.records();
    private static final Duration LIMIT = Duration.ofSeconds(120);

    record Mail(String to) {}

    final String queue = UUID.randomUUID().toString();
    final Client healthy = Client.of(URL);
    private final Deque<AutoCloseable> cleanups = new ArrayDeque<>();

    @AfterEach
    void cleanUp() throws Exception {
        while (!cleanups.isEmpty()) cleanups.pop().close();
    }

    void atTheEnd(AutoCloseable cleanup) {
        cleanups.push(cleanup);
    }

    /** Returns a connection to the store, in a transaction. */
    Connection connect() throws SQLException {
        Connection connection = DriverManager.getConnection(jdbcUrl(System.getenv("MILEPOST_STORE")));
        connection.setAutoCommit(false);
        atTheEnd(connection);
        return connection;
    }

    /** Converts {@code postgres://user:password@host:port/database} to the form of JDBC. */
    static String jdbcUrl(String store) {
        var url = java.net.URI.create(store.replaceFirst("\\?.*", ""));
        String[] user = url.getUserInfo() == null ? new String[] {"postgres"} : url.getUserInfo().split(":", 2);
        return "jdbc:postgresql://" + url.getHost() + ":" + (url.getPort() < 0 ? 5432 : url.getPort()) + url.getPath() + "?user=" + user[0]
            + (user.length > 1 ? "&password=" + user[1] : "");
    }

    interface Ask<T> {
        T ask() throws Exception;
    }

    /** Asks until the answer is {@code true}, or neither that nor {@code null} nor {@code false}. */
    static <T> T until(String what, Ask<T> ask) throws Exception {
        long began = System.nanoTime();
        while (true) {
            T answer = ask.ask();
            if (answer != null && !Boolean.FALSE.equals(answer)) return answer;
            if (System.nanoTime() - began > LIMIT.toNanos()) throw new AssertionError("timed out waiting until: " + what);
            Thread.sleep(20);
        }
    }

    /** Waits in a handler that ignores interrupts, as a stopped handler can. */
    static void untilUninterrupted(Callable<Boolean> done) throws Exception {
        while (!done.call()) {
            try {
                Thread.sleep(20);
            } catch (InterruptedException ignored) {
                // The condition decides.
            }
        }
    }

    /** A running worker and its thread. */
    record Running(Worker worker, Thread thread) {}

    Running runWorker(Client client, UnaryOperator<WorkerBuilder> settings) {
        // So long that no running worker loses its lease, even on a slow machine.
        var builder = Worker.builder(client).queues(queue).lease(Duration.ofSeconds(60)).waitForJobs(Duration.ofMillis(300));
        Worker worker = settings.apply(builder).build();
        var thread = new Thread(worker);
        thread.setDaemon(true); // A hanging worker fails only its test.
        thread.start();
        atTheEnd(() -> {
            worker.stop();
            thread.join(LIMIT.toMillis());
            assertFalse(thread.isAlive(), "the worker stops when its jobs have ended");
        });
        return new Running(worker, thread);
    }

    UUID create(NewJob job) {
        return healthy.create(job.queue(queue)).id();
    }

    UUID create(String kind) {
        return create(NewJob.of(kind, null));
    }

    JobView ended(UUID job) throws Exception {
        return ended(job, "succeeded");
    }

    JobView ended(UUID job, String state) throws Exception {
        return until("the state is " + state, () -> {
            JobView view = healthy.job(job);
            return view.state().equals(state) ? view : null;
        });
    }

    <T> T result(UUID job, Class<T> type) throws Exception {
        return ended(job).result(type, RECORDS).orElse(null);
    }

    /** Returns the error codes of the attempts of a job. */
    List<Object> attempts(UUID job) {
        List<Object> codes = new ArrayList<>();
        for (Object attempt : (List<?>) healthy.ask("GET", "/v1/jobs/" + job + "/attempts", null)) codes.add(((Map<?, ?>) attempt).get("error_code"));
        return codes;
    }

    /** Collects the log of all workers of this process. */
    List<LogRecord> logged() {
        List<LogRecord> records = new CopyOnWriteArrayList<>();
        var handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                records.add(record);
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        LOGGER.addHandler(handler);
        atTheEnd(() -> LOGGER.removeHandler(handler));
        return records;
    }

    private static final Logger LOGGER = Logger.getLogger("milepost");
}
