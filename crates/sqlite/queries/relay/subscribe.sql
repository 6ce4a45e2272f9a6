-- Creates a subscription. Its tokens exceed those of a deleted one of this name, whose publisher may still be frozen. ?1 its name, ?2 now, ?3
-- whether it starts at the end of the log
INSERT INTO milepost_subscription (name, made_at_ms, token, pos)
VALUES (?1, ?2, ?2 * 1000, CASE WHEN ?3 THEN coalesce((SELECT max(pos) FROM milepost_event), 0) ELSE 0 END)
ON CONFLICT DO NOTHING
