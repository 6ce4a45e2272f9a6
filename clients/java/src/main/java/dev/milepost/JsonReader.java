package dev.milepost;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reader of one JSON document. */
final class JsonReader {
    private static final int LONG_DIGITS_MAX = 18; // Each integer of so many digits fits into a long.

    private final String text;
    private int at;

    JsonReader(String text) {
        this.text = text;
    }

    Object document() {
        Object value = value(0);
        skipSpace();
        if (at < text.length()) throw malformed("unexpected text after the value");
        return value;
    }

    private Object value(int depth) {
        skipSpace();
        if (at == text.length()) throw malformed("a value is missing");
        if (depth > Json.DEPTH_MAX) throw malformed("nested more than " + Json.DEPTH_MAX + " levels deep");
        return switch (text.charAt(at)) {
            case '{' -> object(depth);
            case '[' -> array(depth);
            case '"' -> string();
            case 't' -> word("true", true);
            case 'f' -> word("false", false);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        if (takes('}')) return members;
        do {
            skipSpace();
            if (at == text.length() || text.charAt(at) != '"') throw malformed("the name of a member is missing");
            String name = string();
            if (!takes(':')) throw malformed("':' is missing");
            members.put(name, value(depth + 1));
        } while (takes(','));
        if (!takes('}')) throw malformed("',' or '}' is missing");
        return members;
    }

    private List<Object> array(int depth) {
        List<Object> items = new ArrayList<>();
        at++;
        if (takes(']')) return items;
        do items.add(value(depth + 1));
        while (takes(','));
        if (!takes(']')) throw malformed("',' or ']' is missing");
        return items;
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) throw malformed("not a JSON value");
        at += word.length();
        return value;
    }

    private Object number() {
        int from = at;
        if (peek() == '-') at++;
        int digits = peek() == '0' ? skipOne() : skipDigits();
        if (digits == 0) throw malformed("not a JSON value");
        boolean isInteger = peek() != '.' && peek() != 'e' && peek() != 'E';
        if (peek() == '.') {
            at++;
            if (skipDigits() == 0) throw malformed("a digit is missing");
        }
        if (peek() == 'e' || peek() == 'E') {
            at++;
            if (peek() == '+' || peek() == '-') at++;
            if (skipDigits() == 0) throw malformed("a digit is missing");
        }
        String number = text.substring(from, at);
        if (isInteger && digits <= LONG_DIGITS_MAX) return Long.valueOf(number);
        if (number.length() > Json.NUMBER_CHARS_MAX) throw malformed("the number is too long");
        return isInteger ? integer(new BigDecimal(number)) : decimal(number);
    }

    private static Object integer(BigDecimal number) {
        boolean fits = number.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) <= 0 && number.compareTo(BigDecimal.valueOf(Long.MIN_VALUE)) >= 0;
        return fits ? (Object) number.longValueExact() : number;
    }

    private BigDecimal decimal(String number) {
        try {
            return new BigDecimal(number);
        } catch (NumberFormatException tooLarge) {
            throw malformed("the exponent of the number is too large");
        }
    }

    private String string() {
        int from = ++at;
        while (peek() != '"' && peek() != '\\') plain();
        if (peek() == '"') return text.substring(from, at++);
        var out = new StringBuilder(text.substring(from, at));
        while (peek() != '"') {
            if (peek() == '\\') out.append(escaped());
            else {
                int begin = at;
                plain();
                out.append(text, begin, at);
            }
        }
        at++;
        return out.toString();
    }

    /** Skips a character that stands for itself. */
    private void plain() {
        if (at == text.length()) throw malformed("the text has no end");
        int point = text.codePointAt(at);
        if (point < ' ') throw malformed("a control character in a text");
        if (isHalfPair(point)) throw malformed("half a surrogate pair");
        at += Character.charCount(point);
    }

    private String escaped() {
        at += 2;
        if (at > text.length()) throw malformed("the text has no end");
        char escape = text.charAt(at - 1);
        if (escape == 'u') return unicode();
        int index = "\"\\/bfnrt".indexOf(escape);
        if (index < 0) throw malformed("an unknown escape");
        return String.valueOf("\"\\/\b\f\n\r\t".charAt(index));
    }

    private String unicode() {
        char first = hex();
        if (Character.isHighSurrogate(first) && text.startsWith("\\u", at)) {
            at += 2;
            char second = hex();
            if (Character.isLowSurrogate(second)) return String.valueOf(new char[] {first, second});
        }
        if (Character.isSurrogate(first)) throw malformed("half a surrogate pair");
        return String.valueOf(first);
    }

    private char hex() {
        int value = 0;
        for (int n = 0; n < 4; n++, at++) {
            int digit = peek() < 128 ? Character.digit(peek(), 16) : -1;
            if (digit < 0) throw malformed("\\u needs four hexadecimal digits");
            value = value * 16 + digit;
        }
        return (char) value;
    }

    /** Skips a character and the space before it, if it is the next one. */
    private boolean takes(char wanted) {
        skipSpace();
        boolean found = at < text.length() && text.charAt(at) == wanted;
        if (found) at++;
        return found;
    }

    private char peek() {
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private int skipOne() {
        at++;
        return 1;
    }

    private int skipDigits() {
        int from = at;
        while (peek() >= '0' && peek() <= '9') at++;
        return at - from;
    }

    private void skipSpace() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) at++;
    }

    static boolean isHalfPair(int point) {
        return point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE;
    }

    private Json.Malformed malformed(String fault) {
        return new Json.Malformed(fault + " at character " + at + " of the JSON");
    }
}
