-- The runs of a worker that is lost. ?1 worker, ?2 how many
SELECT id, token, kind, attempt, max_attempts, group_key, stop_verb, stop_note
FROM milepost_live INDEXED BY milepost_live_worker
WHERE worker_id = ?1 AND state = 'running'
LIMIT ?2
