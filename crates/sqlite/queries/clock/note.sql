-- Notes the time. ?1 now, ?2 whose note
INSERT INTO milepost_turn (name, until_ms) VALUES (?2, ?1) ON CONFLICT (name) DO UPDATE SET until_ms = excluded.until_ms
