package dev.milepost;

import java.util.UUID;

/**
 * The event that a call emitted.
 *
 * @param sequence its number within its aggregate, from 1
 * @param duplicate whether an event with this id and the same content existed; nothing was changed
 */
public record Emitted(UUID id, long sequence, boolean duplicate) {}
