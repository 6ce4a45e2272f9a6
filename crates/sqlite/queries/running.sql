-- Returns a run if its token is current. ?1 job, ?2 token
SELECT attempt, worker_id, group_key, stop_verb, stop_note FROM milepost_live WHERE id = ?1 AND token = ?2 AND state = 'running'
