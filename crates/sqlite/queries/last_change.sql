-- Returns the last state change of a job, if its history still contains one. ?1 job
SELECT pos, job_id, at_ms, verb, from_state, to_state, attempt, token, worker_id, ready_at_ms,
       error_code, error_message, note
FROM milepost_history
WHERE job_id = ?1
ORDER BY pos DESC
LIMIT 1
