package dev.milepost;

import java.time.Duration;
import java.util.Map;

/**
 * How long a job waits after a failed attempt: {@code base}, doubled with each failure, up to {@code cap}.
 *
 * @param jitter the random share of the wait, from 0 for none to 1 for any wait from zero to double
 */
public record Backoff(Duration base, Duration cap, double jitter) {
    /** Creates a backoff with a random share of 10 %. */
    public Backoff(Duration base, Duration cap) {
        this(base, cap, 0.1);
    }

    Map<String, Object> body() {
        return Map.of("base_ms", base.toMillis(), "cap_ms", cap.toMillis(), "jitter", jitter);
    }
}
