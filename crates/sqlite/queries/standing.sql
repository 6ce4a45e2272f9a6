-- Where a job stands that is live. ?1 job
SELECT state, attempt, token, worker_id, group_key, stop_note, due_at_ms FROM milepost_live WHERE id = ?1
