-- State changes of jobs after position ?1, up to position ?2, at most ?3.
SELECT h.pos, h.job_id, h.at_ms, h.verb, h.from_state, h.to_state, h.attempt, h.worker_id, h.ready_at_ms, h.error_code, j.kind, j.queue,
       j.batch_id
FROM milepost_history h
LEFT JOIN milepost_job j ON j.id = h.job_id
WHERE h.pos > ?1 AND h.pos <= ?2
ORDER BY h.pos
LIMIT ?3
