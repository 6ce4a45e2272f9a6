-- State changes of batches, and of tasks that had no job at the time, after position ?1, up to position ?2, at most ?3.
SELECT h.pos, h.batch_id, b.dag, h.task, h.at_ms, h.verb, h.from_state, h.to_state
FROM milepost_batch_history h
LEFT JOIN milepost_batch b ON b.id = h.batch_id
WHERE h.pos > ?1 AND h.pos <= ?2
ORDER BY h.pos
LIMIT ?3
