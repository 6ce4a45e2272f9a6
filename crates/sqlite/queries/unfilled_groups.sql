-- Groups with waiting jobs and a free slot: one index probe for each waiting group. Groups that wait for tokens are omitted.
WITH RECURSIVE waiting (group_key) AS (
    SELECT min(group_key) FROM milepost_live INDEXED BY milepost_live_waiting
    WHERE group_key IS NOT NULL AND due_at_ms IS NOT NULL AND timed IS NULL
    UNION ALL
    SELECT (
        SELECT min(milepost_live.group_key) FROM milepost_live INDEXED BY milepost_live_waiting
        WHERE due_at_ms IS NOT NULL AND timed IS NULL AND milepost_live.group_key > waiting.group_key
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
    SELECT 1 FROM milepost_group_bucket WHERE milepost_group_bucket.group_key = waiting.group_key AND look_at_us IS NOT NULL
)
