-- Who is next in a group among the due of a priority. ?1 group, ?2 priority, ?3 now
SELECT id, due_at_ms, attempt, token
FROM milepost_live INDEXED BY milepost_live_waiting
WHERE group_key = ?1 AND state = 'blocked' AND priority = ?2 AND due_at_ms <= ?3
ORDER BY due_at_ms, id
LIMIT 1
