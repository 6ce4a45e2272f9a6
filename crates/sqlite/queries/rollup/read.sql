-- Counts by periods of ?1 seconds from ?2 on, of queue ?3 and kind ?4 (null: of all). ?5 to ?7: the lengths of the periods that are stored.
SELECT starts_at_s / ?1 * ?1 AS period, verb, bucket, sum(times)
FROM milepost_rollup
WHERE step_s IN (?5, ?6, ?7) AND starts_at_s >= ?2 AND (?3 IS NULL OR queue = ?3) AND (?4 IS NULL OR kind = ?4)
GROUP BY period, verb, bucket
