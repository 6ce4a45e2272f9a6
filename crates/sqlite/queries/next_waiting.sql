-- Returns the next waiting job of a group: by priority, then due time. ?1 group
SELECT id, due_at_ms, attempt, token
FROM milepost_live INDEXED BY milepost_live_waiting
WHERE group_key = ?1 AND due_at_ms IS NOT NULL AND timed IS NULL
ORDER BY priority, due_at_ms, id
LIMIT 1
