-- Who is next in a group: by priority, then due time. ?1 group
SELECT id, due_at_ms, attempt, token
FROM live INDEXED BY live_waiting
WHERE group_key = ?1 AND state = 'blocked'
ORDER BY priority, due_at_ms, id
LIMIT 1
