package dev.milepost;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Requests to a server. */
record Transport(HttpClient http, URI url, String token, Duration timeout) {
    private static final int NO_CONTENT = 204;
    private static final int ERRORS_FROM = 400;

    Transport {
        boolean isHttp = "http".equals(url.getScheme()) || "https".equals(url.getScheme());
        if (!isHttp || url.getHost() == null)
            throw new IllegalArgumentException(url + " is not the address of a server, such as http://127.0.0.1:7070");
    }

    Transport token(String other) {
        return new Transport(http, url, other, timeout);
    }

    Transport timeout(Duration other) {
        return new Transport(http, url, token, other);
    }

    Transport http(HttpClient other) {
        return new Transport(other, url, token, timeout);
    }

    /** Returns the address: the token is a secret. */
    @Override
    public String toString() {
        return address();
    }

    String address() {
        String port = url.getPort() < 0 ? "" : ":" + url.getPort();
        return url.getScheme() + "://" + url.getHost() + port + path();
    }

    private String path() {
        return url.getRawPath().replaceAll("/+$", "");
    }

    static byte[] json(Object body) {
        return body == null ? null : Json.write(body).getBytes(StandardCharsets.UTF_8);
    }

    /** Sends a request once. The time limit is that of the complete answer; the one of {@code HttpRequest} ends with the headers. */
    Object ask(String method, String path, byte[] body, Map<String, String> headers, Duration limit) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(address() + path)).version(HttpClient.Version.HTTP_1_1);
        request.method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(body));
        request.header("Content-Type", "application/json");
        if (token != null) request.header("Authorization", "Bearer " + token);
        headers.forEach(request::header);
        var answer = http.sendAsync(request.build(), BodyHandlers.ofByteArray());
        Exception cause;
        try {
            return read(answer.get(limit.toNanos(), TimeUnit.NANOSECONDS));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            cause = interrupted;
        } catch (TimeoutException late) {
            cause = new TimeoutException("no complete answer within " + limit.toMillis() / 1e3 + " s");
        } catch (ExecutionException failed) {
            cause = failed.getCause() instanceof Exception of ? of : failed;
        }
        answer.cancel(true); // Closes the connection.
        throw new UnreachableException(address() + " does not answer: " + (cause.getMessage() == null ? cause : cause.getMessage()), cause);
    }

    private static Object read(HttpResponse<byte[]> response) {
        String text = new String(response.body(), StandardCharsets.UTF_8);
        Duration retryAfter = response.headers().firstValue("Retry-After").filter(value -> value.matches("[0-9]{1,9}"))
            .map(value -> Duration.ofSeconds(Long.parseLong(value))).orElse(Duration.ZERO);
        Object answer = null;
        boolean isJson = true;
        try {
            answer = response.statusCode() == NO_CONTENT ? null : Json.read(text);
        } catch (Json.Malformed notJson) {
            isJson = false;
        }
        String detail = "the answer is not from Milepost: " + Answer.shown(text);
        if (response.statusCode() < ERRORS_FROM) {
            if (isJson) return answer;
            throw new UnreachableException(detail, null); // The answer of a proxy leaves the result of the request unknown.
        }
        if (answer instanceof Map<?, ?> problem && problem.get("code") instanceof String code && problem.get("detail") instanceof String words) {
            String at = problem.get("at") instanceof String place ? place : null;
            throw new ProblemException(response.statusCode(), code, words, at, retryAfter);
        }
        throw new ProblemException(response.statusCode(), "not_milepost", detail, null, retryAfter);
    }
}
