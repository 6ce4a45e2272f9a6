package dev.milepost;

/**
 * Conversion of payloads, results and checkpoints to and from JSON. Implementations must be safe for use by several threads.
 *
 * <p>With Jackson: {@code Codec.of(mapper::writeValueAsString, mapper::readValue)}; with Gson: {@code Codec.of(gson::toJson, gson::fromJson)}.
 */
public interface Codec {
    /** Returns the JSON of a value. May throw any exception: the call or the attempt that needs the JSON then fails. */
    String encode(Object value) throws Exception;

    /** Returns the value of a type that the JSON describes. May throw any exception, as {@link #encode}. */
    <T> T decode(String json, Class<T> type) throws Exception;

    /** A conversion of values to JSON, as a method reference. */
    @FunctionalInterface
    interface Encoder {
        String encode(Object value) throws Exception;
    }

    /** A conversion of JSON to values, as a method reference. */
    @FunctionalInterface
    interface Decoder {
        <T> T decode(String json, Class<T> type) throws Exception;
    }

    /** Returns a codec of two methods, such as those of Jackson's {@code ObjectMapper} or of {@code Gson}. */
    static Codec of(Encoder encoder, Decoder decoder) {
        return new Codec() {
            @Override
            public String encode(Object value) throws Exception {
                return encoder.encode(value);
            }

            @Override
            public <T> T decode(String json, Class<T> type) throws Exception {
                return decoder.decode(json, type);
            }
        };
    }

    /**
     * Returns the codec that is used unless another one is given. It converts records whose components are texts, booleans, numbers, enums (by
     * name), {@code UUID}, {@code Instant}, {@code OffsetDateTime}, {@code LocalDate} and {@code Duration} (as ISO 8601 texts), lists, maps with
     * text keys, other records, and {@code Object} (as {@link Json} reads it). Members that a record does not have are ignored; a component whose
     * member is missing is {@code null}, and an error if it is primitive.
     */
    static Codec records() {
        return RecordCodec.INSTANCE;
    }
}
