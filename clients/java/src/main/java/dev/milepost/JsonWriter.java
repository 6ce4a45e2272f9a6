package dev.milepost;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;

/** Writer of JSON. */
final class JsonWriter {
    private final StringBuilder out;

    JsonWriter(StringBuilder out) {
        this.out = out;
    }

    void value(Object value, int depth) {
        if (depth > Json.DEPTH_MAX) throw new Json.Malformed("nested more than " + Json.DEPTH_MAX + " levels deep");
        if (value == null || value instanceof Boolean) out.append(value);
        else if (value instanceof CharSequence text) string(text.toString());
        else if (value instanceof Number number) number(number);
        else if (value instanceof Json.Text json) out.append(json.text());
        else if (value instanceof Map<?, ?> map) object(map, depth);
        else if (value instanceof Iterable<?> items) array(items.iterator(), depth);
        else if (value instanceof Object[] items) array(Arrays.asList(items).iterator(), depth);
        else throw new Json.Malformed(value.getClass().getName() + " has no JSON form here; use a codec");
    }

    private void object(Map<?, ?> map, int depth) {
        String before = "{";
        for (var member : map.entrySet()) {
            out.append(before);
            if (!(member.getKey() instanceof String name)) throw new Json.Malformed("the name of a member is not a text: " + member.getKey());
            string(name);
            out.append(':');
            value(member.getValue(), depth + 1);
            before = ",";
        }
        out.append(map.isEmpty() ? "{}" : "}");
    }

    private void array(Iterator<?> items, int depth) {
        out.append('[');
        while (items.hasNext()) {
            value(items.next(), depth + 1);
            if (items.hasNext()) out.append(',');
        }
        out.append(']');
    }

    private void number(Number number) {
        boolean isExact = number instanceof Long || number instanceof Integer || number instanceof Short || number instanceof Byte
            || number instanceof BigInteger || number instanceof BigDecimal;
        if (!isExact && !((number instanceof Double || number instanceof Float) && Double.isFinite(number.doubleValue())))
            throw new Json.Malformed(number + " (" + number.getClass().getName() + ") is not a JSON number");
        out.append(number);
    }

    private void string(String text) {
        out.append('"');
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            int escape = "\"\\\b\f\n\r\t".indexOf(c);
            if (escape >= 0) out.append('\\').append("\"\\bfnrt".charAt(escape));
            else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
            else if (!Character.isSurrogate(c)) out.append(c);
            else {
                int point = text.codePointAt(at);
                if (JsonReader.isHalfPair(point)) throw new Json.Malformed("half a surrogate pair at character " + at + " of a text");
                out.appendCodePoint(point);
                at++;
            }
        }
        out.append('"');
    }
}
