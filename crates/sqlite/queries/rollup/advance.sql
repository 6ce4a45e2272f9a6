-- Notes position ?1 at time ?2 as the end of a rollup, unless another process has rolled up since position ?3 (null: the first).
INSERT INTO milepost_rollup_position (one, pos, at_ms) VALUES (1, ?1, ?2)
ON CONFLICT (one) DO UPDATE SET pos = excluded.pos, at_ms = excluded.at_ms WHERE pos = ?3
