-- Groups that somebody waits for and nobody holds: one probe a waiting group.
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
WHERE group_key IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM group_slot WHERE group_slot.group_key = waiting.group_key
)
