package dev.milepost;

import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/**
 * An event to be emitted.
 *
 * @param aggregateType the type of the aggregate, such as {@code order}
 * @param aggregateId the id of the aggregate; events of an aggregate are ordered
 * @param type the type of the event, such as {@code order.paid}
 * @param payload its content, which the codec converts to JSON, or a {@link Json.Text}, which is published byte for byte; {@code null} is {@code {}}
 * @param id its id, so that a repeated call emits nothing; {@code null}: the store assigns one
 * @param sequence its number within the aggregate, if the application assigns numbers; {@code null}: the store assigns the next one
 * @param headers its headers; {@code null}: none
 * @param gapAllowed whether {@code sequence} may skip numbers
 */
public record NewEvent(
    String aggregateType, String aggregateId, String type, Object payload, UUID id, Long sequence, Map<String, String> headers, boolean gapAllowed) {

    public NewEvent {
        Objects.requireNonNull(aggregateType, "the aggregate type of an event is missing");
        Objects.requireNonNull(aggregateId, "the aggregate id of an event is missing");
        Objects.requireNonNull(type, "the type of an event is missing");
        headers = headers == null ? null : Map.copyOf(headers);
    }

    /** Returns an event with default settings. The other methods return a copy with one setting more. */
    public static NewEvent of(String aggregateType, String aggregateId, String type, Object payload) {
        return new NewEvent(aggregateType, aggregateId, type, payload, null, null, null, false);
    }

    public NewEvent id(UUID id) {
        return new NewEvent(aggregateType, aggregateId, type, payload, id, sequence, headers, gapAllowed);
    }

    public NewEvent sequence(long sequence) {
        return new NewEvent(aggregateType, aggregateId, type, payload, id, sequence, headers, gapAllowed);
    }

    public NewEvent headers(Map<String, String> headers) {
        return new NewEvent(aggregateType, aggregateId, type, payload, id, sequence, headers, gapAllowed);
    }

    public NewEvent gapAllowed(boolean gapAllowed) {
        return new NewEvent(aggregateType, aggregateId, type, payload, id, sequence, headers, gapAllowed);
    }
}
