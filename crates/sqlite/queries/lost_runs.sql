-- Returns the runs of a lost worker; the last column: whether it is a run of a bulk job that has completed a chunk since it was claimed.
-- ?1 worker, ?2 how many
SELECT id, token, kind, attempt, max_attempts, group_key, stop_verb, stop_note,
       coalesce((SELECT b.token = milepost_live.token AND b.chunks > b.chunks_before FROM milepost_bulk b WHERE b.job_id = milepost_live.id), 0)
FROM milepost_live INDEXED BY milepost_live_worker
WHERE worker_id = ?1 AND state = 'running'
LIMIT ?2
