package dev.milepost;

import java.time.Duration;

/** Waits before requests are repeated. */
final class Waits {
    /** The maximum wait that a server can request. */
    private static final Duration RETRY_AFTER_MAX = Duration.ofSeconds(30);

    private Waits() {}

    /** Returns how long to wait after an error: longer after each failure, and at least as long as the server requests, up to 30 s. */
    static Duration after(Throwable error, int failures) {
        Duration requested = error instanceof ProblemException problem ? problem.retryAfter() : Duration.ZERO;
        return max(min(requested, RETRY_AFTER_MAX), Duration.ofMillis(200L << Math.min(failures, 4)));
    }

    /** Returns whether the same request may succeed later. */
    static boolean passes(Throwable error) {
        return !(error instanceof ProblemException problem) || problem.passes();
    }

    /** Returns whether the wait was completed: {@code false} if the thread was interrupted, which it then still is. */
    static boolean sleep(Duration duration) {
        try {
            Thread.sleep(duration.toMillis());
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    static Duration min(Duration a, Duration b) {
        return a.compareTo(b) <= 0 ? a : b;
    }

    static Duration max(Duration a, Duration b) {
        return a.compareTo(b) >= 0 ? a : b;
    }
}
