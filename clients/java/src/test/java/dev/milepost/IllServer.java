package dev.milepost;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Function;

/** Faulty proxy in front of the real server: forwards requests unless a test specifies a fault. */
final class IllServer implements AutoCloseable {
    /** A fault of a request: an answer that replaces the server's, or a way to fail. */
    record Fault(int status, Map<String, String> headers, String body) {}

    static final Fault LOSE = fault("done, but the answer is lost");
    static final Fault DENY = fault("done, but answered with 503");
    static final Fault HANG = fault("not done, and never answered");
    static final Fault TRICKLE = fault("not done, and answered so slowly that the answer never ends");
    static final Fault PAGE = answer(200, "<html>captive</html>"); // The page of a proxy that answers instead of the server.

    /** A request: its path, and the status of the answer, which is negative if there was none. */
    record Asked(String method, String path, int status, int bytes) {}

    static final int LOST = -1;
    static final int HUNG = -2;

    final String url;
    final List<Asked> asked = new CopyOnWriteArrayList<>();
    /** The jobs of each report. */
    final List<List<String>> finished = new CopyOnWriteArrayList<>();
    /** The jobs whose ends an open transaction holds. */
    final Set<String> held = ConcurrentHashMap.newKeySet();
    /** Returns the fault of a request. */
    volatile BiFunction<String, String, Fault> fault = (method, path) -> null;
    /** Returns the fault of a report of the ends of these jobs. */
    volatile Function<List<String>, Fault> refuses = jobs -> null;

    private final HttpServer server;
    private final HttpClient http = HttpClient.newHttpClient();
    private final URI behind;
    private final CountDownLatch over = new CountDownLatch(1);

    IllServer(String url) throws IOException {
        behind = URI.create(url);
        server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", this::answer);
        server.setExecutor(Executors.newCachedThreadPool(run -> {
            var thread = new Thread(run);
            thread.setDaemon(true);
            return thread;
        }));
        server.start();
        this.url = "http://127.0.0.1:" + server.getAddress().getPort();
    }

    static Fault status(int status) {
        return new Fault(status, Map.of(), "{\"code\": \"ill\", \"detail\": \"answered with " + status + "\"}");
    }

    static Fault answer(int status, String body) {
        return new Fault(status, Map.of(), body);
    }

    Fault withRetryAfter(int status, int seconds) {
        return new Fault(status, Map.of("Retry-After", String.valueOf(seconds)), status(status).body());
    }

    private static Fault fault(String name) {
        return new Fault(0, Map.of(), name);
    }

    /** Sets the faults of the next requests whose path ends with {@code end}, one for each request. */
    void meets(String method, String end, Fault... faults) {
        Queue<Fault> left = new ArrayDeque<>(List.of(faults));
        fault = (did, path) -> {
            synchronized (left) {
                return did.equals(method) && path.endsWith(end) ? left.poll() : null;
            }
        };
    }

    /** Returns the statuses of the requests whose path ends with {@code end}, in order. */
    List<Integer> answered(String method, String end) {
        return asked.stream().filter(one -> one.method.equals(method) && one.path.endsWith(end)).map(Asked::status).toList();
    }

    @Override
    public void close() {
        over.countDown();
        server.stop(0);
    }

    private void answer(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readAllBytes();
        String method = exchange.getRequestMethod();
        String path = exchange.getRequestURI().getPath();
        Fault met = fault.apply(method, path);
        try (exchange) {
            if (path.endsWith("/finish")) met = ofReport(exchange, body, met);
            if (met == HANG) {
                asked.add(new Asked(method, path, HUNG, body.length));
                over.await();
                return;
            }
            if (met == TRICKLE) {
                trickle(exchange);
                return;
            }
            boolean replaces = met != null && met != LOSE && met != DENY;
            Fault sent = replaces ? met : passOn(exchange, body);
            if (met == DENY) sent = answer(503, "{\"code\": \"store_unavailable\", \"detail\": \"the result of the commit is unknown\"}");
            asked.add(new Asked(method, path, met == LOSE ? LOST : sent.status, body.length));
            if (met == LOSE) return; // Closes the connection.
            byte[] answer = sent.body.getBytes(StandardCharsets.UTF_8);
            sent.headers.forEach(exchange.getResponseHeaders()::set);
            exchange.sendResponseHeaders(sent.status, sent.status == 204 ? -1 : answer.length);
            if (sent.status != 204) exchange.getResponseBody().write(answer);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void trickle(HttpExchange exchange) throws IOException, InterruptedException {
        exchange.sendResponseHeaders(200, 0);
        while (!over.await(50, TimeUnit.MILLISECONDS)) {
            exchange.getResponseBody().write(' ');
            exchange.getResponseBody().flush();
        }
    }

    /** Notes the jobs of a report. Reports only the ends that are not held, and returns the answer to all. */
    private Fault ofReport(HttpExchange exchange, byte[] body, Fault met) throws IOException, InterruptedException {
        List<?> ends = (List<?>) ((Map<?, ?>) Json.read(new String(body, StandardCharsets.UTF_8))).get("runs");
        List<String> jobs = ends.stream().map(IllServer::job).toList();
        Set<String> holds = Set.copyOf(held);
        finished.add(jobs);
        Fault fault = met != null ? met : refuses.apply(jobs);
        if (fault != null || jobs.stream().noneMatch(holds::contains)) return fault;
        List<?> free = ends.stream().filter(end -> !holds.contains(job(end))).toList();
        String reported = free.isEmpty() ? "{\"runs\":[]}" : passOn(exchange, Json.write(Map.of("runs", free)).getBytes(StandardCharsets.UTF_8)).body();
        var answers = ((List<?>) ((Map<?, ?>) Json.read(reported)).get("runs")).iterator();
        return answer(200, Json.write(Map.of("runs", jobs.stream().map(job -> holds.contains(job) ? "held" : answers.next()).toList())));
    }

    private static String job(Object end) {
        return ((String) ((Map<?, ?>) end).get("run")).split("\\.")[0];
    }

    private Fault passOn(HttpExchange exchange, byte[] body) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(behind.resolve(exchange.getRequestURI())).version(HttpClient.Version.HTTP_1_1)
            .method(exchange.getRequestMethod(), HttpRequest.BodyPublishers.ofByteArray(body)).header("Content-Type", "application/json");
        String key = exchange.getRequestHeaders().getFirst("Idempotency-Key");
        if (key != null) request.header("Idempotency-Key", key);
        var answer = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
        return answer(answer.statusCode(), answer.body());
    }
}
