-- Returns the names of all consumers. It skips from key to key in the indexes instead of reading all rows.
WITH RECURSIVE checkpoint_name (consumer) AS (
    SELECT (SELECT min(consumer) FROM milepost_aggregate_checkpoint)
    UNION ALL
    SELECT (SELECT min(c.consumer) FROM milepost_aggregate_checkpoint c WHERE c.consumer > n.consumer)
    FROM checkpoint_name n WHERE n.consumer IS NOT NULL
),
processed_name (consumer) AS (
    SELECT (SELECT min(consumer) FROM milepost_processed_event)
    UNION ALL
    SELECT (SELECT min(p.consumer) FROM milepost_processed_event p WHERE p.consumer > n.consumer)
    FROM processed_name n WHERE n.consumer IS NOT NULL
),
known (consumer) AS (
    SELECT consumer FROM checkpoint_name
    UNION SELECT consumer FROM processed_name
    UNION SELECT consumer FROM milepost_inbox_consumer
    UNION SELECT consumer FROM milepost_inbox_dead
)
SELECT k.consumer, s.gap_wait_ms, s.parked_max, s.gap_policy, s.begins_anywhere,
       (SELECT count(*) FROM milepost_aggregate_checkpoint c WHERE c.consumer = k.consumer),
       (SELECT count(*) FROM milepost_inbox_parked p WHERE p.consumer = k.consumer),
       (SELECT count(*) FROM milepost_inbox_dead d WHERE d.consumer = k.consumer),
       coalesce((SELECT t.duplicates FROM milepost_inbox_tally t WHERE t.consumer = k.consumer), 0)
FROM known k LEFT JOIN milepost_inbox_consumer s ON s.consumer = k.consumer
WHERE k.consumer IS NOT NULL
ORDER BY k.consumer
