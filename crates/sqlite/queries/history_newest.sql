-- Returns the newest state changes of a job, newest first. ?1 job, ?2 how many at most
SELECT pos, job_id, at_ms, verb, from_state, to_state, attempt, token, worker_id, ready_at_ms,
       error_code, error_message, note
FROM milepost_history
WHERE job_id = ?1
ORDER BY pos DESC
LIMIT ?2
