-- When the next one of a priority is due that waits in a group. ?1 group, ?2 priority, ?3 after
SELECT min(due_at_ms) FROM milepost_live INDEXED BY milepost_live_waiting
WHERE group_key = ?1 AND state = 'blocked' AND priority = ?2 AND due_at_ms > ?3
