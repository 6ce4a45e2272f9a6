-- Returns the runs of a worker that have a stop request. ?1 worker
SELECT id, token, stop_verb FROM milepost_live INDEXED BY milepost_live_stop
WHERE stop_at_ms IS NOT NULL AND worker_id = ?1 AND state = 'running'
