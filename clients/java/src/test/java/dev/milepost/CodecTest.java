package dev.milepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.Gson;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.DisplayNameGeneration;
import org.junit.jupiter.api.DisplayNameGenerator;
import org.junit.jupiter.api.Test;

@DisplayNameGeneration(DisplayNameGenerator.ReplaceUnderscores.class)
class CodecTest {
    private enum Size { SMALL, LARGE { @Override public String toString() { return "big"; } } }

    private record Item(String name, int cents) {}

    private record Order(
        UUID id, Item first, List<Item> items, Map<String, List<Integer>> counts, Size size, Instant at, OffsetDateTime zoned, LocalDate day, Duration took,
        boolean paid, Boolean maybe, long big, BigDecimal exact, BigInteger whole, double ratio, Object any, String none) {}

    private record Positive(int n) {
        Positive {
            if (n <= 0) throw new IllegalArgumentException("not positive");
        }
    }

    private record Unsupported(StringBuilder text) {}

    public record Bean(String to, int n) {}

    private final Codec records = Codec.records();

    @Test
    void records_survive_a_round_trip() throws Exception {
        var order = new Order(UUID.randomUUID(), new Item("é", 5), List.of(new Item("b", 7)), Map.of("x", List.of(1, 2)), Size.LARGE,
            Instant.parse("2026-11-22T15:58:39.799447Z"), OffsetDateTime.parse("2026-11-22T15:58:39+01:00"), LocalDate.of(2026, 11, 22), Duration.ofSeconds(90),
            true, null, Long.MAX_VALUE, new BigDecimal("12.50"), BigInteger.TWO.pow(70), 0.1, Map.of("a", List.of(1L)), null);
        assertEquals(order, records.decode(records.encode(order), Order.class));
        assertEquals(Arrays.asList(1, null), records.decode("{\"counts\":{\"x\":[1,null]},\"paid\":true,\"big\":1,\"ratio\":1}", Order.class).counts().get("x"));
        assertEquals("{\"name\":\"a\",\"cents\":1}", records.encode(new Item("a", 1)));
        assertEquals("[\"SMALL\",{\"k\":\"PT1M30S\"}]", records.encode(List.of(Size.SMALL, Map.of("k", Duration.ofSeconds(90)))));
        assertEquals(7, records.decode("7", Integer.class));
    }

    @Test
    void unknown_members_are_ignored_and_missing_ones_are_null() throws Exception {
        assertEquals(new Item(null, 5), records.decode("{\"cents\": 5, \"new\": [1]}", Item.class));
    }

    @Test
    void json_that_does_not_fit_is_refused_with_its_place_and_without_its_content() {
        record Case(String json, Class<?> type, String message) {}
        for (var one : List.of(
            new Case("{\"name\":\"secret\"}", Item.class, "cents: null does not fit int"),
            new Case("{\"name\":\"secret\",\"cents\":\"secret\"}", Item.class, "cents: this text does not fit int"),
            new Case("{\"name\":1,\"cents\":1}", Item.class, "name: this number does not fit String"),
            new Case("{\"cents\":1.5}", Item.class, "cents: this number does not fit int"),
            new Case("{\"cents\":2147483648}", Item.class, "cents: this number does not fit int"),
            new Case("{\"cents\":1e999999999}", Item.class, "cents: this number does not fit int"),
            new Case("{\"items\":[{\"cents\":1},{\"cents\":[]}]}", Order.class, "items[1].cents: an array does not fit int"),
            new Case("{\"counts\":{\"x\":[1,true]}}", Order.class, "counts.x[1]: a boolean does not fit Integer"),
            new Case("{\"id\":\"secret\"}", Order.class, "id: this text does not fit UUID"),
            new Case("{\"size\":\"big\"}", Order.class, "size: this text does not fit Size"),
            new Case("{\"at\":\"secret\"}", Order.class, "at: this text does not fit Instant"),
            new Case("1e999", Double.class, "this number does not fit Double"),
            new Case("1e999999999", BigInteger.class, "this number does not fit BigInteger"),
            new Case("[]", Item.class, "an array does not fit Item"),
            new Case("{\"n\":0}", Positive.class, "this object does not fit Positive"),
            new Case("{\"text\":\"a\"}", Unsupported.class, "text: Codec.records() does not convert java.lang.StringBuilder; use a codec of Jackson or Gson")))
            assertEquals(one.message, assertThrows(Json.Malformed.class, () -> records.decode(one.json, one.type), one.json).getMessage());
    }

    @Test
    void a_value_that_contains_itself_is_refused() {
        List<Object> loop = new java.util.ArrayList<>();
        loop.add(loop);
        assertThrows(Json.Malformed.class, () -> records.encode(loop));
        assertThrows(Json.Malformed.class, () -> records.encode(new Object()));
    }

    @Test
    void jackson_and_gson_are_codecs_of_two_methods() throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        Gson gson = new Gson();
        for (Codec codec : List.of(Codec.of(mapper::writeValueAsString, mapper::readValue), Codec.of(gson::toJson, gson::fromJson))) {
            assertEquals(Map.of("to", "a", "n", 5L), Json.read(codec.encode(Map.of("to", "a", "n", 5))));
        }
        Codec jackson = Codec.of(mapper::writeValueAsString, mapper::readValue);
        assertEquals(new Bean("a", 5), jackson.decode(jackson.encode(new Bean("a", 5)), Bean.class));
    }

    @Test
    void a_codec_that_fails_or_writes_no_json_is_reported() {
        var failing = Codec.of(value -> { throw new java.io.IOException("no"); }, records::decode);
        var lying = Codec.of(value -> "1,\"x\":2", records::decode);
        for (Codec codec : List.of(failing, lying)) {
            var refused = assertThrows(Json.Malformed.class, () -> Codecs.encode(codec, "v", "the payload"));
            assertTrue(refused.getMessage().startsWith("the payload of type java.lang.String cannot be converted to JSON: "), refused.getMessage());
            assertFalse(refused.getCause() == null);
        }
    }
}
