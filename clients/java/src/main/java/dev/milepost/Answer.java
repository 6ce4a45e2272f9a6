package dev.milepost;

import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Access to the members of an answer. A member that is missing or has another type is an answer of a proxy: the result is then unknown. */
final class Answer {
    private static final int SHOWN_CHARS_MAX = 200;

    private Answer() {}

    /** Returns an answer that is an object. */
    static Map<?, ?> of(Object answer) {
        if (answer instanceof Map<?, ?> members) return members;
        throw new UnreachableException("the answer is not from Milepost: " + shown(String.valueOf(answer)), null);
    }

    static <T> T part(Map<?, ?> members, String name, Class<T> type) {
        Object part = members.get(name);
        if (type.isInstance(part)) return type.cast(part);
        throw new UnreachableException("the answer is not from Milepost: it has no \"" + name + "\": " + shown(members.toString()), null);
    }

    static List<?> list(Object answer, String name) {
        return part(of(answer), name, List.class);
    }

    static UUID uuid(Map<?, ?> members, String name) {
        try {
            return UUID.fromString(part(members, name, String.class));
        } catch (IllegalArgumentException notOne) {
            throw new UnreachableException("the answer is not from Milepost: \"" + name + "\" is not a UUID", notOne);
        }
    }

    static String shown(String text) {
        return text.length() > SHOWN_CHARS_MAX ? text.substring(0, SHOWN_CHARS_MAX) : text;
    }
}
