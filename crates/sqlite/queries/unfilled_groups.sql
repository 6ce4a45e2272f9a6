-- Groups that somebody is due and waits for, and that have a slot free: a few probes a waiting group. Those whose
-- tokens are waited for are left out. ?1 now, ?2 the same in microseconds
WITH RECURSIVE waiting (group_key) AS (
    SELECT min(group_key) FROM live INDEXED BY live_waiting WHERE state = 'blocked' AND group_key IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(live.group_key) FROM live INDEXED BY live_waiting
        WHERE live.state = 'blocked' AND live.group_key > waiting.group_key
    )
    FROM waiting
    WHERE waiting.group_key IS NOT NULL
)
SELECT group_key FROM waiting
WHERE group_key IS NOT NULL
  AND (SELECT count(*) FROM group_slot WHERE group_slot.group_key = waiting.group_key) < coalesce(
    (SELECT coalesce(slots, 1e18) FROM group_limit WHERE name = waiting.group_key),
    (SELECT coalesce(slots, 1e18) FROM group_limit
     WHERE instr(waiting.group_key, ':') > 0
       AND name = substr(waiting.group_key, 1, instr(waiting.group_key, ':')) || '*'),
    1)
  AND NOT EXISTS (
    SELECT 1 FROM group_bucket
    WHERE group_bucket.group_key = waiting.group_key AND look_at_us IS NOT NULL AND full_at_us > ?2
)
  AND EXISTS (
    SELECT 1 FROM (VALUES (1), (2), (3), (4)) AS priorities
    JOIN live INDEXED BY live_waiting
      ON live.group_key = waiting.group_key AND live.state = 'blocked'
         AND live.priority = priorities.column1 AND live.due_at_ms <= ?1
)
