-- Adds a count of a period of ?1 seconds.
INSERT INTO milepost_rollup (step_s, starts_at_s, queue, kind, verb, bucket, times) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (step_s, starts_at_s, queue, kind, verb, bucket) DO UPDATE SET times = times + excluded.times
