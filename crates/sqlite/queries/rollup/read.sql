-- Counts by periods of ?1 seconds from ?2 on, of queue ?3 and kind ?4 (null: of all). ?5 to ?7: the lengths of the periods that are stored. ?8, ?9:
-- JSON lists of patterns, only of queues and kinds that match one of them (null: of all).
SELECT starts_at_s / ?1 * ?1 AS period, verb, bucket, sum(times)
FROM milepost_rollup
WHERE step_s IN (?5, ?6, ?7) AND starts_at_s >= ?2 AND (?3 IS NULL OR queue = ?3) AND (?4 IS NULL OR kind = ?4)
  AND (?8 IS NULL OR EXISTS (SELECT 1 FROM json_each(?8) AS pattern WHERE queue GLOB pattern.value))
  AND (?9 IS NULL OR EXISTS (SELECT 1 FROM json_each(?9) AS pattern WHERE kind GLOB pattern.value))
GROUP BY period, verb, bucket
