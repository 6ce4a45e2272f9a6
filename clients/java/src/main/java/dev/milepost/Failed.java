package dev.milepost;

import java.time.Duration;

/** Thrown by a handler: the attempt failed with this error code. For any other exception, the code is the simple name of its class. */
public final class Failed extends RuntimeException {
    private final String code;
    private final boolean retryable;
    private final Duration delay;

    private Failed(String message, Throwable cause, String code, boolean retryable, Duration delay) {
        super(message, cause);
        this.code = code;
        this.retryable = retryable;
        this.delay = delay;
    }

    /** Creates a failure after which another attempt follows, as long as attempts are left. */
    public Failed(String code, String message) {
        this(message, null, code, true, null);
    }

    /** Returns the same failure after which no attempt follows. */
    public Failed permanent() {
        return new Failed(getMessage(), getCause(), code, false, delay);
    }

    /** Returns the same failure after which the next attempt waits at least this long, longer if the backoff of the kind is longer. */
    public Failed delay(Duration delay) {
        return new Failed(getMessage(), getCause(), code, retryable, delay);
    }

    /** Returns the same failure with its cause. */
    public Failed because(Throwable cause) {
        return new Failed(getMessage(), cause, code, retryable, delay);
    }

    String code() {
        return code;
    }

    boolean retryable() {
        return retryable;
    }

    Duration delay() {
        return delay;
    }
}
