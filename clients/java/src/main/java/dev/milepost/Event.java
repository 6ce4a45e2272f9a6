package dev.milepost;

import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/**
 * An event that a consumer has received from a broker, or that its inbox has kept.
 *
 * @param sequence its number within its aggregate, from 1
 * @param payload its content: JSON, as it was published
 * @param emittedAt when it was emitted; {@code null} if the message does not contain it. With it, the inbox does not take an event under a used
 *     sequence for a duplicate
 */
public record Event(
    UUID id, String aggregateType, String aggregateId, long sequence, String type, String payload, Map<String, String> headers, Instant emittedAt) {

    public Event {
        Objects.requireNonNull(id, "the id of an event is missing");
        Objects.requireNonNull(payload, "the payload of an event is missing");
        headers = headers == null ? Map.of() : Map.copyOf(headers);
    }

    /**
     * Returns the payload as a value of a type.
     *
     * @throws Json.Malformed if it does not fit
     */
    public <T> T payload(Class<T> type, Codec codec) {
        return Codecs.decode(codec, payload, type, "the payload of the event " + id);
    }
}
