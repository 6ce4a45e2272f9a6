-- Stores progress and checkpoint of a run if its token is current; omitted values are unchanged.
-- ?1 job, ?2 token, ?3 whether progress is given, ?4 done, ?5 total, ?6 message, ?7 checkpoint, ?8 now
INSERT INTO milepost_progress (job_id, done, total, message, checkpoint, updated_at_ms)
SELECT id, ?4, ?5, ?6, ?7, ?8 FROM milepost_live WHERE id = ?1 AND token = ?2 AND state = 'running'
ON CONFLICT (job_id) DO UPDATE SET
    done = iif(?3, excluded.done, done),
    total = iif(?3, excluded.total, total),
    message = iif(?3, excluded.message, message),
    checkpoint = coalesce(excluded.checkpoint, checkpoint),
    updated_at_ms = excluded.updated_at_ms
