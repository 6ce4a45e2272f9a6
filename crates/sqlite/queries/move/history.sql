-- A page of history. ?1 how many, ?2 after this pos
SELECT pos, job_id, at_ms, verb, from_state, to_state, attempt, token, worker_id, ready_at_ms, error_code,
       error_message, note
FROM milepost_history WHERE pos > ?2 ORDER BY pos LIMIT ?1
