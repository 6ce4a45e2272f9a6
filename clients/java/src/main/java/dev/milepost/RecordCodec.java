package dev.milepost;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** Conversion of records; see {@link Codec#records}. */
final class RecordCodec implements Codec {
    static final RecordCodec INSTANCE = new RecordCodec();

    /** Types that are texts in JSON: their {@code toString}, and back. */
    private static final Map<Class<?>, Function<String, Object>> TEXTS = Map.of(
        String.class, text -> text, UUID.class, UUID::fromString, Instant.class, text -> OffsetDateTime.parse(text).toInstant(),
        OffsetDateTime.class, OffsetDateTime::parse, LocalDate.class, LocalDate::parse, Duration.class, Duration::parse);

    /** Types that are numbers in JSON, and their exact conversions. */
    private static final Map<Class<?>, Function<BigDecimal, Object>> NUMBERS = Map.ofEntries(
        Map.entry(Long.class, BigDecimal::longValueExact), Map.entry(long.class, BigDecimal::longValueExact),
        Map.entry(Integer.class, BigDecimal::intValueExact), Map.entry(int.class, BigDecimal::intValueExact),
        Map.entry(Short.class, BigDecimal::shortValueExact), Map.entry(short.class, BigDecimal::shortValueExact),
        Map.entry(Byte.class, BigDecimal::byteValueExact), Map.entry(byte.class, BigDecimal::byteValueExact),
        Map.entry(Double.class, RecordCodec::finite), Map.entry(double.class, RecordCodec::finite),
        Map.entry(Float.class, BigDecimal::floatValue), Map.entry(float.class, BigDecimal::floatValue),
        Map.entry(BigDecimal.class, number -> number), Map.entry(BigInteger.class, RecordCodec::bigInteger));

    private RecordCodec() {}

    @Override
    public String encode(Object value) throws Exception {
        return Json.write(tree(value, 0));
    }

    @Override
    public <T> T decode(String json, Class<T> type) throws Exception {
        @SuppressWarnings("unchecked")
        T value = (T) value(Json.read(json), type, "");
        return value;
    }

    /** Replaces records, and values that are texts in JSON, by what {@link Json#write} accepts. */
    private static Object tree(Object value, int depth) throws ReflectiveOperationException {
        if (value == null || value instanceof String || value instanceof Json.Text) return value;
        if (depth > Json.DEPTH_MAX) throw new Json.Malformed("nested more than " + Json.DEPTH_MAX + " levels deep");
        if (value instanceof Enum<?> one) return one.name();
        if (TEXTS.containsKey(value.getClass())) return value.toString();
        if (value instanceof Map<?, ?> map) {
            Map<Object, Object> members = new LinkedHashMap<>();
            for (var member : map.entrySet()) members.put(member.getKey(), tree(member.getValue(), depth + 1));
            return members;
        }
        if (value instanceof Iterable<?> items) {
            List<Object> all = new ArrayList<>();
            for (Object item : items) all.add(tree(item, depth + 1));
            return all;
        }
        if (!(value instanceof Record)) return value;
        Map<String, Object> members = new LinkedHashMap<>();
        for (RecordComponent component : value.getClass().getRecordComponents()) {
            var accessor = component.getAccessor();
            accessor.setAccessible(true); // Records can be private classes.
            members.put(component.getName(), tree(accessor.invoke(value), depth + 1));
        }
        return members;
    }

    /** Converts what {@link Json#read} returns to a type. {@code place}: the path of the value, for messages. */
    private static Object value(Object json, Type type, String place) throws ReflectiveOperationException {
        if (type instanceof ParameterizedType generic) return container(json, generic, place);
        if (!(type instanceof Class<?> wanted)) throw unsupported(type, place);
        if (json == null && !wanted.isPrimitive()) return null;
        if (wanted == Object.class) return json;
        if ((wanted == boolean.class || wanted == Boolean.class) && json instanceof Boolean) return json;
        if (NUMBERS.containsKey(wanted) && json instanceof Number number)
            return checked(() -> NUMBERS.get(wanted).apply(new BigDecimal(number.toString())), wanted, json, place);
        if (TEXTS.containsKey(wanted) && json instanceof String text)
            return checked(() -> TEXTS.get(wanted).apply(text), wanted, json, place);
        if (wanted.isEnum() && json instanceof String name)
            return checked(() -> constant(wanted, name), wanted, json, place);
        if (wanted.isRecord() && json instanceof Map<?, ?> members) return record(members, wanted, place);
        if (wanted.isInstance(json)) return json; // Map and List without the types of their values.
        if (!isSupported(wanted)) throw unsupported(wanted, place);
        throw misfit(wanted, json, place);
    }

    private static boolean isSupported(Class<?> type) {
        return type == boolean.class || type == Boolean.class || NUMBERS.containsKey(type) || TEXTS.containsKey(type) || type.isEnum() || type.isRecord()
            || type == Map.class || type == List.class;
    }

    private static Object container(Object json, ParameterizedType type, String place) throws ReflectiveOperationException {
        Type[] parts = type.getActualTypeArguments();
        if (json == null) return null;
        if (type.getRawType() == List.class && json instanceof List<?> items) {
            List<Object> all = new ArrayList<>();
            for (Object item : items) all.add(value(item, parts[0], place + "[" + all.size() + "]"));
            return all;
        }
        if (type.getRawType() == Map.class && parts[0] == String.class && json instanceof Map<?, ?> members) {
            Map<Object, Object> all = new LinkedHashMap<>();
            for (var member : members.entrySet()) all.put(member.getKey(), value(member.getValue(), parts[1], place + "." + member.getKey()));
            return all;
        }
        boolean isKnown = type.getRawType() == List.class || type.getRawType() == Map.class && parts[0] == String.class;
        throw isKnown ? misfit((Class<?>) type.getRawType(), json, place) : unsupported(type, place);
    }

    private static Object record(Map<?, ?> members, Class<?> type, String place) throws ReflectiveOperationException {
        RecordComponent[] components = type.getRecordComponents();
        Class<?>[] types = new Class<?>[components.length];
        Object[] values = new Object[components.length];
        for (int n = 0; n < components.length; n++) {
            String name = components[n].getName();
            types[n] = components[n].getType();
            values[n] = value(members.get(name), components[n].getGenericType(), place.isEmpty() ? name : place + "." + name);
        }
        var constructor = type.getDeclaredConstructor(types);
        constructor.setAccessible(true);
        try {
            return constructor.newInstance(values);
        } catch (InvocationTargetException refused) {
            if (refused.getCause() instanceof Exception cause) throw (Json.Malformed) misfit(type, members, place).initCause(cause);
            throw refused;
        }
    }

    private static Object checked(Supplier<Object> convert, Class<?> type, Object json, String place) {
        try {
            return convert.get();
        } catch (RuntimeException fault) {
            throw (Json.Malformed) misfit(type, json, place).initCause(fault);
        }
    }

    private static Object constant(Class<?> type, String name) {
        return Stream.of(type.getEnumConstants()).filter(one -> ((Enum<?>) one).name().equals(name)).findAny().orElseThrow();
    }

    private static double finite(BigDecimal number) {
        double value = number.doubleValue();
        if (Double.isInfinite(value)) throw new ArithmeticException("too large");
        return value;
    }

    /** A huge exponent would make an integer of a gigabyte. */
    private static BigInteger bigInteger(BigDecimal number) {
        if (number.precision() - number.scale() > Json.NUMBER_CHARS_MAX) throw new ArithmeticException("too large");
        return number.toBigIntegerExact();
    }

    /** The message contains no values: payloads do not belong into logs. */
    private static Json.Malformed misfit(Class<?> type, Object json, String place) {
        String kind = json == null ? "null" : json instanceof String ? "this text" : json instanceof Number ? "this number"
            : json instanceof Boolean ? "a boolean" : json instanceof List ? "an array" : "this object";
        return new Json.Malformed((place.isEmpty() ? "" : place + ": ") + kind + " does not fit " + type.getSimpleName());
    }

    private static Json.Malformed unsupported(Type type, String place) {
        String at = place.isEmpty() ? "" : place + ": ";
        return new Json.Malformed(at + "Codec.records() does not convert " + type.getTypeName() + "; use a codec of Jackson or Gson");
    }
}
