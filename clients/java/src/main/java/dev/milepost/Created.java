package dev.milepost;

import java.util.Map;
import java.util.UUID;

/**
 * The job or batch that a call created.
 *
 * @param duplicate whether it already existed under the same key; it was not changed
 */
public record Created(UUID id, boolean duplicate) {
    static Created of(Object answer) {
        Map<?, ?> members = Answer.of(answer);
        return new Created(Answer.uuid(members, "id"), Answer.part(members, "duplicate", Boolean.class));
    }
}
