package dev.milepost;

import java.util.Map;
import java.util.UUID;

/**
 * The job or batch that a call created.
 *
 * @param duplicate whether it already existed under the same key
 * @param outcome what the call did: {@code created}, {@code kept}, {@code replaced}, {@code moved} or {@code dropped}
 */
public record Created(UUID id, boolean duplicate, String outcome) {
    /** Returns the answer of a call without a rule for duplicates. */
    public Created(UUID id, boolean duplicate) {
        this(id, duplicate, duplicate ? "kept" : "created");
    }

    static Created of(Object answer) {
        Map<?, ?> members = Answer.of(answer);
        Created created = new Created(Answer.uuid(members, "id"), Answer.part(members, "duplicate", Boolean.class));
        return members.get("outcome") instanceof String outcome ? new Created(created.id(), created.duplicate(), outcome) : created;
    }
}
