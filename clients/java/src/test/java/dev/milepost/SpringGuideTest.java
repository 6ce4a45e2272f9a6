package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.zaxxer.hikari.HikariDataSource;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.sql.DataSource;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.support.PropertySourcesPlaceholderConfigurer;
import org.springframework.core.env.MapPropertySource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.annotation.AnnotationTransactionAttributeSource;
import org.springframework.transaction.interceptor.TransactionInterceptor;

/**
 * Compiles and runs the classes of the guide for Spring Boot. Spring Framework provides what Spring Boot would configure. Its version in Debian cannot make
 * proxies of classes: here, the configuration is a `@Component`, and subclasses pass calls to the interceptor for `@Transactional`.
 */
@EnabledIfEnvironmentVariable(named = "MILEPOST_STORE", matches = "postgres.*")
class SpringGuideTest extends Workplace {
    private static final Pattern FILE = Pattern.compile("```java\n( *import .*?)```", Pattern.DOTALL);
    private static final Pattern NAME = Pattern.compile("public class (\\w+) ");

    /** What Spring Boot configures. */
    static class Boot {
        @Bean(destroyMethod = "close")
        public HikariDataSource dataSource() {
            var pool = new HikariDataSource();
            pool.setJdbcUrl(jdbcUrl(System.getenv("MILEPOST_STORE")));
            return pool;
        }

        @Bean
        public JdbcTemplate jdbcTemplate(DataSource dataSource) {
            return new JdbcTemplate(dataSource);
        }

        @Bean
        public DataSourceTransactionManager transactionManager(DataSource dataSource) {
            return new DataSourceTransactionManager(dataSource);
        }

        @Bean
        public TransactionInterceptor transactionInterceptor(DataSourceTransactionManager transactionManager) {
            return new TransactionInterceptor(transactionManager, new AnnotationTransactionAttributeSource());
        }

        @Bean
        public ObjectMapper objectMapper() {
            return new ObjectMapper();
        }

        @Bean
        public static PropertySourcesPlaceholderConfigurer placeholders() {
            return new PropertySourcesPlaceholderConfigurer();
        }
    }

    /** Returns a subclass of a service whose method is called in a transaction. */
    private static String proxy(String service, String method, String argument) {
        return """
            public class TransactionalSERVICE extends SERVICE {
                private final org.springframework.transaction.interceptor.TransactionInterceptor interceptor;

                public TransactionalSERVICE(org.springframework.jdbc.core.JdbcTemplate jdbc, dev.milepost.Milepost milepost,
                        org.springframework.transaction.interceptor.TransactionInterceptor interceptor) {
                    super(jdbc, milepost);
                    this.interceptor = interceptor;
                }

                @Override
                public void METHOD(ARGUMENT argument) {
                    dev.milepost.Intercepted.call(interceptor, this, SERVICE.class, "METHOD", argument, () -> super.METHOD(argument));
                }
            }
            """.replace("SERVICE", service).replace("METHOD", method).replace("ARGUMENT", argument);
    }

    /** Compiles the classes of the guide, with names of tables, a kind and a queue of this test. Returns them by name. */
    private Map<String, Class<?>> compiled(Path folder, String suffix) throws Exception {
        List<String> names = new ArrayList<>();
        List<String> command = new ArrayList<>(List.of("-d", folder.toString(), "-cp", System.getProperty("java.class.path")));
        var files = FILE.matcher(Files.readString(Path.of("../../docs/guides/spring-boot.md")));
        while (files.find()) {
            String text = files.group(1).replace("into orders ", "into orders" + suffix + " ").replace("into invoice ", "into invoice" + suffix + " ")
                .replace("\"invoice\"", "\"" + queue + "\"").replace("Configuration;", "Bean;").replace("@Configuration", "@org.springframework.stereotype.Component");
            var name = NAME.matcher(text);
            assertTrue(name.find(), text);
            names.add(name.group(1));
            Path file = folder.resolve(name.group(1) + ".java");
            Files.writeString(file, text);
            command.add(file.toString());
        }
        assertEquals(List.of("MilepostConfiguration", "Orders", "Invoices"), names);
        for (String proxy : List.of(proxy("Orders", "place", "int"), proxy("Invoices", "write", "dev.milepost.Job<Invoices.Order>"))) {
            var name = NAME.matcher(proxy);
            assertTrue(name.find(), proxy);
            names.add(name.group(1));
            command.add(Files.writeString(folder.resolve(name.group(1) + ".java"), proxy).toString());
        }
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, command.toArray(String[]::new)));
        var loader = new URLClassLoader(new URL[] {folder.toUri().toURL()});
        atTheEnd(loader);
        Map<String, Class<?>> classes = new java.util.HashMap<>();
        for (String name : names) classes.put(name, loader.loadClass(name));
        return classes;
    }

    @Test
    void the_classes_of_the_guide_store_orders_jobs_events_and_invoices_together(@TempDir Path folder) throws Exception {
        String suffix = "_" + queue.replace("-", "");
        Map<String, Class<?>> classes = compiled(folder, suffix);
        try (var context = new AnnotationConfigApplicationContext()) {
            context.setClassLoader(classes.get("Orders").getClassLoader());
            context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("application.yaml", Map.of("milepost.url", Workplace.URL, "milepost.token", "")));
            context.register(Boot.class, classes.get("MilepostConfiguration"), classes.get("TransactionalOrders"), classes.get("TransactionalInvoices"));
            context.refresh();
            JdbcTemplate jdbc = context.getBean(JdbcTemplate.class);
            jdbc.execute("create table orders" + suffix + " (id int primary key)");
            jdbc.execute("create table invoice" + suffix + " (order_id int, attempt int)");
            Object orders = context.getBean(classes.get("Orders"));
            var place = classes.get("Orders").getMethod("place", int.class);
            place.invoke(orders, 17);
            until("the invoice is stored", () -> jdbc.queryForList("select order_id from invoice" + suffix, Integer.class).equals(List.of(17)));
            var ofKind = "select count(*) from milepost.job where kind = ?";
            assertEquals(1, jdbc.queryForObject(ofKind, Integer.class, queue));
            try { // Order 17 exists: nothing of the second call is stored.
                place.invoke(orders, 17);
                throw new AssertionError("the second order is refused");
            } catch (InvocationTargetException refused) {
                assertEquals("DuplicateKeyException", refused.getCause().getClass().getSimpleName());
            }
            assertEquals(1, jdbc.queryForObject(ofKind, Integer.class, queue));
            String job = jdbc.queryForObject("select id::text from milepost.job where kind = ?", String.class, queue);
            until("the job has succeeded", () -> healthy.job(java.util.UUID.fromString(job)).state().equals("succeeded"));
            jdbc.execute("drop table orders" + suffix + ", invoice" + suffix);
        }
    }
}
