package dev.milepost;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;

/**
 * A job as the server shows it.
 *
 * @param state its state, such as {@code pending}, {@code running} or {@code succeeded}
 * @param attempt the number of attempts until now
 * @param fields all that the server returns, with the names of the HTTP API, as {@link Json} reads it; fields without a value are missing
 */
public record JobView(UUID id, String kind, String queue, String state, int attempt, int maxAttempts, Map<String, Object> fields) {
    private static final Set<String> ENDED = Set.of("succeeded", "failed", "aborted", "canceled", "skipped");

    /**
     * The last failed attempt.
     *
     * @param code a stable name for the type of failure
     */
    public record Failure(String code, String message) {}

    static JobView of(Object answer) {
        Map<?, ?> members = Answer.of(answer);
        @SuppressWarnings("unchecked")
        Map<String, Object> fields = (Map<String, Object>) members;
        return new JobView(Answer.uuid(members, "id"), Answer.part(members, "kind", String.class), Answer.part(members, "queue", String.class),
            Answer.part(members, "state", String.class), Answer.part(members, "attempt", Long.class).intValue(),
            Answer.part(members, "max_attempts", Long.class).intValue(), fields);
    }

    /** Returns whether it does not run again unless an operator requests it. */
    public boolean hasEnded() {
        return ENDED.contains(state);
    }

    /** Returns its input. */
    public <T> T payload(Class<T> type, Codec codec) {
        return Codecs.decode(codec, Json.write(fields.get("payload")), type, "the payload of the job " + id);
    }

    /** Returns the result of its handler; empty if it has none. */
    public <T> Optional<T> result(Class<T> type, Codec codec) {
        Object result = fields.get("result");
        return result == null ? Optional.empty() : Optional.of(Codecs.decode(codec, Json.write(result), type, "the result of the job " + id));
    }

    /** Returns its last failed attempt, if any. */
    public Optional<Failure> lastFailure() {
        return fields.get("last_failure") instanceof Map<?, ?> last
            ? Optional.of(new Failure(String.valueOf(last.get("code")), String.valueOf(last.get("message")))) : Optional.empty();
    }
}
