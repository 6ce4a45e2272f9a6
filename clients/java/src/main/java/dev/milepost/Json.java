package dev.milepost;

/**
 * Strict JSON (RFC 8259) as plain Java values: {@code null}, {@link Boolean}, {@link String}, {@link Long}, {@link java.math.BigDecimal},
 * {@link java.util.List} and {@link java.util.Map}.
 */
public final class Json {
    /** The maximum depth of nested arrays and objects. The server refuses values that are nested more than 120 levels deep. */
    static final int DEPTH_MAX = 128;

    /** The maximum length of a number, in characters. */
    static final int NUMBER_CHARS_MAX = 20_000;

    private Json() {}

    /**
     * A payload, a result, an input or a checkpoint that is JSON already: it is used as it is, and no {@link Codec} converts it.
     *
     * @param text one JSON value
     */
    public record Text(String text) {
        /** @throws Malformed if the text is not one JSON value */
        public Text {
            read(text);
        }
    }

    /** Signals text that is not JSON, a value that has no JSON form, or JSON that does not fit a type. The message contains the place. */
    public static final class Malformed extends IllegalArgumentException {
        Malformed(String message) {
            super(message);
        }
    }

    /**
     * Reads one JSON value. Integers in the range of a {@code long} become {@link Long}, other numbers {@link java.math.BigDecimal}. The last of
     * several members with the same name counts, as in PostgreSQL's {@code jsonb}.
     *
     * @throws Malformed if the text is not JSON, is nested more than 128 levels deep, or contains half a surrogate pair
     */
    public static Object read(String text) {
        return new JsonReader(text).document();
    }

    /**
     * Writes a value of the types that {@link #read} returns, and also other numbers, arrays, collections and {@link Text}.
     *
     * @throws Malformed if the value has another type, is not a finite number, is nested more than 128 levels deep, or contains half a surrogate
     *     pair
     */
    public static String write(Object value) {
        var out = new StringBuilder();
        new JsonWriter(out).value(value, 0);
        return out.toString();
    }
}
