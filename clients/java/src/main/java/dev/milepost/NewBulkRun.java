package dev.milepost;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * A run of a bulk job to be started. Only the name is required; {@code null} is the default of each other setting.
 *
 * @param name the name of the bulk job, which a worker's configuration defines
 * @param parameters the parameters of its SQL, which the codec converts to a JSON object, or a {@link Json.Text}; {@code null}: none
 * @param key at most one run of a bulk job has a given key; a repeated call returns the existing run
 * @param startAt when it may start at the earliest
 * @param priority from 1 (first) to 4 (last); that of the definition unless given
 * @param traceparent its parent span, in the format of W3C Trace Context
 */
public record NewBulkRun(String name, Object parameters, String key, Instant startAt, Integer priority, String traceparent) {
    public NewBulkRun {
        Objects.requireNonNull(name, "the name of a bulk job is missing");
    }

    /** Returns a run with default settings. The other methods return a copy with one setting more. */
    public static NewBulkRun of(String name, Object parameters) {
        return new NewBulkRun(name, parameters, null, null, null, null);
    }

    public NewBulkRun key(String key) {
        return new NewBulkRun(name, parameters, key, startAt, priority, traceparent);
    }

    public NewBulkRun startAt(Instant startAt) {
        return new NewBulkRun(name, parameters, key, startAt, priority, traceparent);
    }

    public NewBulkRun priority(int priority) {
        return new NewBulkRun(name, parameters, key, startAt, priority, traceparent);
    }

    public NewBulkRun traceparent(String traceparent) {
        return new NewBulkRun(name, parameters, key, startAt, priority, traceparent);
    }

    /** Returns the body of a request that starts the run. */
    Map<String, Object> body(Codec codec) {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("name", name);
        body.put("parameters", parameters == null ? null : new Json.Text(Codecs.encode(codec, parameters, "the parameters")));
        body.put("key", key);
        body.put("start_at", startAt == null ? null : startAt.toString());
        body.put("priority", priority);
        body.values().removeIf(Objects::isNull);
        return body;
    }
}
