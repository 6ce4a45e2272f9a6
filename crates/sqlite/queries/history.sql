-- Returns state changes of a job, oldest first. ?1 job, ?2 after this position, ?3 how many at most
SELECT pos, job_id, at_ms, verb, from_state, to_state, attempt, token, worker_id, ready_at_ms,
       error_code, error_message, note
FROM milepost_history
WHERE job_id = ?1 AND pos > ?2
ORDER BY pos
LIMIT ?3
