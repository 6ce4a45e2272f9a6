package dev.milepost;

import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/**
 * A batch to be started. Only the DAG is required; {@code null} is the default of each other setting.
 *
 * @param dag the name of the DAG
 * @param input the value of {@code input} in its expressions, which the codec converts to JSON, or a {@link Json.Text}; {@code null} is {@code {}}
 * @param key at most one batch of a DAG has a given key; a repeated call returns the existing batch
 * @param version the first digits of a version; the latest unless given
 * @param inputChecked whether the caller has checked the input against the version's schema, which SQL cannot do; only for calls in SQL
 * @param id its id; only for calls in SQL
 * @param nominalAt the tick for which it is started
 * @param nominalZone the time zone of the tick's date; UTC unless given
 * @param traceparent its parent span, in the format of W3C Trace Context
 */
public record NewBatch(
    String dag, Object input, String key, String version, boolean inputChecked, UUID id, Instant nominalAt, ZoneId nominalZone, String traceparent) {

    public NewBatch {
        Objects.requireNonNull(dag, "the DAG of a batch is missing");
        if (ZoneOffset.UTC.equals(nominalZone)) nominalZone = ZoneId.of("UTC"); // The name "Z" is not one of the IANA.
    }

    /** Returns a batch with default settings. The other methods return a copy with one setting more. */
    public static NewBatch of(String dag, Object input) {
        return new NewBatch(dag, input, null, null, false, null, null, null, null);
    }

    public NewBatch key(String key) {
        return new NewBatch(dag, input, key, version, inputChecked, id, nominalAt, nominalZone, traceparent);
    }

    public NewBatch version(String version) {
        return new NewBatch(dag, input, key, version, inputChecked, id, nominalAt, nominalZone, traceparent);
    }

    public NewBatch inputChecked(boolean inputChecked) {
        return new NewBatch(dag, input, key, version, inputChecked, id, nominalAt, nominalZone, traceparent);
    }

    public NewBatch id(UUID id) {
        return new NewBatch(dag, input, key, version, inputChecked, id, nominalAt, nominalZone, traceparent);
    }

    /** Sets the tick, and the time zone of its date. */
    public NewBatch nominalAt(Instant nominalAt, ZoneId nominalZone) {
        return new NewBatch(dag, input, key, version, inputChecked, id, nominalAt, nominalZone, traceparent);
    }

    public NewBatch traceparent(String traceparent) {
        return new NewBatch(dag, input, key, version, inputChecked, id, nominalAt, nominalZone, traceparent);
    }

    /** Returns the body of a request that starts the batch. */
    Map<String, Object> body(Codec codec) {
        if (id != null || inputChecked) throw new IllegalArgumentException("the HTTP API assigns ids and checks inputs: start the batch in SQL");
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("dag", dag);
        body.put("input", input == null ? null : new Json.Text(Codecs.encode(codec, input, "the input")));
        body.put("key", key);
        body.put("version", version);
        body.put("nominal_at", nominalAt == null ? null : nominalAt.toString());
        body.put("nominal_zone", nominalZone == null ? null : nominalZone.getId());
        body.values().removeIf(Objects::isNull);
        return body;
    }
}
