package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.zaxxer.hikari.HikariDataSource;
import java.util.Arrays;
import java.util.Optional;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.jdbc.core.ConnectionCallback;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.annotation.AnnotationTransactionAttributeSource;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.interceptor.TransactionInterceptor;

/** Tests with Spring's transactions: {@code @Transactional}, {@code JdbcTemplate} and {@code DataSourceUtils}, over a HikariCP pool. */
@EnabledIfEnvironmentVariable(named = "MILEPOST_STORE", matches = "postgres.*")
class SpringTest extends Workplace {
    /** A service, as the guide shows it. */
    interface Orders {
        UUID place(String to, RuntimeException fault);

        void pay(Job<Mail> job);
    }

    private HikariDataSource pool;
    private JdbcTemplate jdbc;
    private Orders orders;

    private final class TransactionalOrders implements Orders {
        @Override
        @Transactional
        public UUID place(String to, RuntimeException fault) {
            jdbc.update("insert into " + table() + " values (?)", to);
            Created created = jdbc.execute((ConnectionCallback<Created>) c -> MILEPOST.enqueue(c, NewJob.of("mail", new Mail(to)).queue(queue).key(to)));
            if (fault != null) throw fault;
            return created.id();
        }

        @Override
        @Transactional
        public void pay(Job<Mail> job) {
            jdbc.update("insert into " + table() + " values (?)", job.payload().to() + job.attempt());
            MILEPOST.complete(DataSourceUtils.getConnection(pool), job, "paid");
            if (job.attempt() == 1) throw new IllegalStateException("after complete");
        }
    }

    private String table() {
        return "java_" + queue.replace("-", "");
    }

    @BeforeEach
    void start() {
        pool = new HikariDataSource();
        pool.setJdbcUrl(jdbcUrl(System.getenv("MILEPOST_STORE")));
        pool.setMaximumPoolSize(2);
        atTheEnd(pool);
        jdbc = new JdbcTemplate(pool);
        jdbc.execute("create table " + table() + " (name text)");
        atTheEnd(() -> jdbc.execute("drop table " + table()));
        var factory = new ProxyFactory(new TransactionalOrders());
        factory.addAdvice(new TransactionInterceptor(new DataSourceTransactionManager(pool), new AnnotationTransactionAttributeSource()));
        orders = (Orders) factory.getProxy();
    }

    private int rows() {
        return jdbc.queryForObject("select count(*) from " + table(), Integer.class);
    }

    private int jobs() {
        return jdbc.queryForObject("select count(*) from milepost.job where queue = ?", Integer.class, queue);
    }

    @Test
    void a_job_is_created_in_the_transaction_of_a_service() {
        UUID job = orders.place("ada", null);
        assertEquals(new Mail("ada"), healthy.job(job).payload(Mail.class, RECORDS));
        assertEquals(1, rows());
    }

    @Test
    void an_exception_of_the_service_or_of_milepost_rolls_both_back() {
        assertThrows(IllegalStateException.class, () -> orders.place("ada", new IllegalStateException("no")));
        // An unchecked exception of this package rolls back, too, without further settings.
        var refused = assertThrows(StoreException.Refused.class, () -> orders.place("x".repeat(5_000), null));
        assertEquals(Optional.of("MP001"), refused.sqlState());
        assertEquals(0, rows());
        assertEquals(0, jobs());
    }

    @Test
    void a_handler_completes_its_job_in_the_transaction_of_a_service() throws Exception {
        var soon = new Backoff(java.time.Duration.ofMillis(100), java.time.Duration.ofMillis(100), 0);
        runWorker(healthy, worker -> worker.backoff("mail", soon).handle("mail", Mail.class, job -> {
            orders.pay(job);
            return null;
        }));
        UUID job = create(NewJob.of("mail", new Mail("ada")));
        assertEquals("paid", result(job, String.class));
        assertEquals(Arrays.asList("IllegalStateException", null), attempts(job));
        assertEquals("ada2", jdbc.queryForObject("select string_agg(name, ',') from " + table(), String.class));
    }
}
