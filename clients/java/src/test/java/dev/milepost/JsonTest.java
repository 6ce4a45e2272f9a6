package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.DisplayNameGeneration;
import org.junit.jupiter.api.DisplayNameGenerator;
import org.junit.jupiter.api.Test;

@DisplayNameGeneration(DisplayNameGenerator.ReplaceUnderscores.class)
class JsonTest {
    @Test
    void values_are_read_as_plain_java_values() {
        assertEquals(Map.of("a", List.of(1L, true, "x")), Json.read(" {\"a\" : [1,\ttrue,\r\n\"x\"]} "));
        assertEquals(Arrays.asList((Object) null, false, Map.of(), List.of()), Json.read("[null,false,{},[]]"));
        assertEquals(Long.MIN_VALUE, Json.read("-9223372036854775808"));
        assertEquals(new BigDecimal("9223372036854775808"), Json.read("9223372036854775808"));
        assertEquals(new BigDecimal("1.50"), Json.read("1.50"));
        assertEquals(new BigDecimal("1E+400"), Json.read("1e400"));
        assertEquals("\"\\/\b\f\n\r\té\ud83d\ude00 \u007f", Json.read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00 \u007f\""));
        assertEquals(Map.of("a", 2L), Json.read("{\"a\":1,\"a\":2}"));
    }

    @Test
    void text_that_is_not_json_is_refused_with_its_place() {
        List<String> texts = List.of(
            "", " ", "{", "[", "[1", "[1,", "[1,]", "[,1]", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{a:1}", "{1:1}", "tru", "nul", "True", "NaN",
            "Infinity", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "1 2", "[1]]", "'a'", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
            "\"\\u٠٠٠٠\"", "\"\n\"", "\"\0\"", "\"\\ud800\"", "\"\\ud800x\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\ud800\"", "\ufeff1", "[1\u00a0]",
            "1e99999999999", "/**/1", "[\f1]");
        for (String text : texts) {
            var refused = assertThrows(Json.Malformed.class, () -> Json.read(text), text);
            assertTrue(refused.getMessage().matches("(?s).* at character \\d+ of the JSON"), refused.getMessage());
        }
        assertEquals("',' or ']' is missing at character 3 of the JSON", assertThrows(Json.Malformed.class, () -> Json.read("[1 2]")).getMessage());
    }

    @Test
    void depth_and_length_are_bounded() {
        String deep = "[".repeat(128) + "]".repeat(128);
        assertEquals(deep, Json.write(Json.read(deep)));
        for (int depth : new int[] {130, 100_000}) assertThrows(Json.Malformed.class, () -> Json.read("[".repeat(depth) + "]".repeat(depth)));
        assertThrows(Json.Malformed.class, () -> Json.read("{\"a\":".repeat(100_000)));
        assertThrows(Json.Malformed.class, () -> Json.read("9".repeat(1_000_000)));
        List<Object> loop = new ArrayList<>();
        loop.add(loop);
        assertThrows(Json.Malformed.class, () -> Json.write(loop));
        assertEquals(1_000_000, ((List<?>) Json.read("[" + "1,".repeat(999_999) + "1]")).size());
    }

    @Test
    void values_are_written_so_that_they_are_read_again() {
        assertEquals("{\"a\":[1,2.5,null,\"\\u0001\\n\\\"é😀\"]}", Json.write(Map.of("a", Arrays.asList(1, 2.5, null, "\u0001\n\"é😀"))));
        assertEquals("[1,1.5,18446744073709551616]", Json.write(new Object[] {(short) 1, 1.5f, BigInteger.TWO.pow(64)}));
        assertEquals("[{\"a\": 1}]", Json.write(List.of(new Json.Text("{\"a\": 1}"))));
        for (Object bad : new Object[] {Double.NaN, Double.POSITIVE_INFINITY, new Object(), "\ud800", Map.of(1, 1), new int[] {1}})
            assertThrows(Json.Malformed.class, () -> Json.write(bad));
        assertThrows(Json.Malformed.class, () -> new Json.Text("1,\"x\":2"));
    }

    @Test
    void random_values_survive_a_round_trip() {
        var random = new Random(4711);
        for (int n = 0; n < 2_000; n++) {
            Object value = value(random, 0);
            assertEquals(value, Json.read(Json.write(value)));
        }
    }

    @Test
    void no_text_makes_the_reader_fail_in_another_way() {
        var random = new Random(4712);
        String alphabet = "{}[]\",:\\ue+-.0129truefalsn \t\ud800\udc00\u0000é";
        for (int n = 0; n < 200_000; n++) {
            var text = new StringBuilder();
            for (int length = random.nextInt(12); length > 0; length--) text.append(alphabet.charAt(random.nextInt(alphabet.length())));
            try {
                String written = Json.write(Json.read(text.toString()));
                assertEquals(written, Json.write(Json.read(written)));
            } catch (Json.Malformed expected) {
                // Most of these texts are no JSON.
            }
        }
    }

    private static Object value(Random random, int depth) {
        return switch (random.nextInt(depth < 4 ? 7 : 5)) {
            case 0 -> null;
            case 1 -> random.nextBoolean();
            case 2 -> random.nextLong() >> random.nextInt(64);
            case 3 -> new BigDecimal(random.nextInt()).movePointLeft(1 + random.nextInt(20));
            case 4 -> random.ints(random.nextInt(8), 0, 0xD800).collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
            case 5 -> random.ints(random.nextInt(4)).mapToObj(n -> value(random, depth + 1)).collect(ArrayList::new, ArrayList::add, ArrayList::addAll);
            default -> {
                Map<String, Object> members = new java.util.LinkedHashMap<>();
                for (int n = random.nextInt(4); n > 0; n--) members.put("k" + n, value(random, depth + 1));
                yield members;
            }
        };
    }
}
