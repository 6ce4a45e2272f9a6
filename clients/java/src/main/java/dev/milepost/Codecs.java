package dev.milepost;

/** Calls of codecs, which can throw anything. */
final class Codecs {
    private Codecs() {}

    /**
     * Returns the JSON of a value. A {@link Json.Text} is used as it is.
     *
     * @param what the value in messages, such as {@code the payload}
     * @throws Json.Malformed if the codec fails or returns text that is not JSON
     */
    static String encode(Codec codec, Object value, String what) {
        if (value instanceof Json.Text json) return json.text();
        if (value == null) return "null";
        try {
            String json = codec.encode(value);
            Json.read(json);
            return json;
        } catch (Exception | StackOverflowError fault) {
            throw malformed(what + " of type " + value.getClass().getName() + " cannot be converted to JSON", fault);
        }
    }

    /** @throws Json.Malformed if the codec fails */
    static <T> T decode(Codec codec, String json, Class<T> type, String what) {
        if (type == Json.Text.class) return type.cast(new Json.Text(json));
        try {
            return codec.decode(json, type);
        } catch (Exception | StackOverflowError fault) {
            throw malformed(what + " cannot be converted to " + type.getName(), fault);
        }
    }

    private static Json.Malformed malformed(String fault, Throwable cause) {
        var malformed = new Json.Malformed(fault + ": " + cause);
        malformed.initCause(cause);
        return malformed;
    }
}
