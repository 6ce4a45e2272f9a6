-- Groups that somebody is due and waits for, and that have a slot free: a few probes a waiting group. Those whose
-- tokens are waited for are left out. ?1 now, ?2 the same in microseconds
WITH RECURSIVE waiting (group_key) AS (
    SELECT min(group_key) FROM milepost_live INDEXED BY milepost_live_waiting WHERE state = 'blocked' AND group_key IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(milepost_live.group_key) FROM milepost_live INDEXED BY milepost_live_waiting
        WHERE milepost_live.state = 'blocked' AND milepost_live.group_key > waiting.group_key
    )
    FROM waiting
    WHERE waiting.group_key IS NOT NULL
)
SELECT group_key FROM waiting
WHERE group_key IS NOT NULL
  AND (SELECT count(*) FROM milepost_group_slot WHERE milepost_group_slot.group_key = waiting.group_key) < coalesce(
    (SELECT coalesce(slots, 1e18) FROM milepost_group_limit WHERE name = waiting.group_key),
    (SELECT coalesce(slots, 1e18) FROM milepost_group_limit
     WHERE instr(waiting.group_key, ':') > 0
       AND name = substr(waiting.group_key, 1, instr(waiting.group_key, ':')) || '*'),
    1)
  AND NOT EXISTS (
    SELECT 1 FROM milepost_group_bucket
    WHERE milepost_group_bucket.group_key = waiting.group_key AND look_at_us IS NOT NULL AND full_at_us > ?2
)
  AND EXISTS (
    SELECT 1 FROM (VALUES (1), (2), (3), (4)) AS priorities
    JOIN milepost_live INDEXED BY milepost_live_waiting
      ON milepost_live.group_key = waiting.group_key AND milepost_live.state = 'blocked'
         AND milepost_live.priority = priorities.column1 AND milepost_live.due_at_ms <= ?1
)
