-- A page of live, with the time at which dead letters failed. ?1 how many, ?2 after this id
SELECT id, kind, queue, priority, state, ready_at_ms, due_at_ms, started_at_ms,
       CASE state WHEN 'failed' THEN coalesce(
           (SELECT at_ms FROM milepost_history WHERE job_id = milepost_live.id AND to_state = 'failed' ORDER BY pos DESC LIMIT 1),
           started_at_ms) END,
       attempt, max_attempts, token, worker_id, claim_id, group_key, stop_verb, stop_at_ms, stop_note,
       start_reserved IS 1
FROM milepost_live WHERE id > ?2 ORDER BY id LIMIT ?1
