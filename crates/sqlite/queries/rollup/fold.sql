-- Adds periods of ?1 seconds that began before ?3 to periods of ?2 seconds.
INSERT INTO milepost_rollup (step_s, starts_at_s, queue, kind, verb, bucket, times)
SELECT ?2, starts_at_s / ?2 * ?2 AS period, queue, kind, verb, bucket, sum(times)
FROM milepost_rollup
WHERE step_s = ?1 AND starts_at_s < ?3
GROUP BY period, queue, kind, verb, bucket
ON CONFLICT (step_s, starts_at_s, queue, kind, verb, bucket) DO UPDATE SET times = times + excluded.times
