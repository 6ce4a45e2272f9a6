-- Returns the state of a live job. ?1 job
SELECT state, attempt, token, worker_id, group_key, stop_note, due_at_ms, stop_verb FROM milepost_live WHERE id = ?1
