-- What has happened to batches, and to tasks that had no job then, after place ?1, up to place ?2, at most ?3.
SELECT h.pos, h.batch_id, b.dag, h.task, h.at_ms, h.verb, h.from_state, h.to_state
FROM milepost_batch_history h
LEFT JOIN milepost_batch b ON b.id = h.batch_id
WHERE h.pos > ?1 AND h.pos <= ?2
ORDER BY h.pos
LIMIT ?3
