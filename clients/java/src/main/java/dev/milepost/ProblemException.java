package dev.milepost;

import java.time.Duration;
import java.util.Optional;

/** The server rejected the request. The codes are documented in {@code docs/ERRORS.md}. */
public final class ProblemException extends MilepostException {
    private final int status;
    private final String code;
    private final String at;
    private final Duration retryAfter;

    ProblemException(int status, String code, String detail, String at, Duration retryAfter) {
        super(code + ": " + detail + (at == null ? "" : " (at " + at + ")"), null);
        this.status = status;
        this.code = code;
        this.at = at;
        this.retryAfter = retryAfter;
    }

    /** Returns the HTTP status. */
    public int status() {
        return status;
    }

    /** Returns the stable code of the problem, such as {@code invalid_job}. */
    public String code() {
        return code;
    }

    /** Returns the place of the fault in the request, such as {@code jobs[1].max_attempts}. */
    public Optional<String> at() {
        return Optional.ofNullable(at);
    }

    /** Returns the wait that the server requests before the request is repeated; zero if it requests none. */
    public Duration retryAfter() {
        return retryAfter;
    }

    /** Returns whether the same request may succeed later: its status is 408, 429 or 5xx. */
    public boolean passes() {
        return status == 408 || status == 429 || status >= 500;
    }
}
