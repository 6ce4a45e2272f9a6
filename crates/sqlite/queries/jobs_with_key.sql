-- Returns the jobs that own a key, newest first: one for each kind.
-- ?1 older than this job, ?2 state, ?3 kind, ?4 queue (?2 to ?4 NULL: any), ?5 how many, ?6 key
SELECT page.id, page.kind, page.queue, page.state, milepost_job.priority, page.attempt, page.max_attempts, milepost_job.key,
       milepost_job.group_key, milepost_job.created_at_ms, page.ready_at_ms, page.started_at_ms, page.ended_at_ms,
       page.worker_id, page.token, milepost_job.nominal_at_ms
FROM (
    SELECT milepost_live.id, milepost_live.kind, queue, state, attempt, max_attempts, ready_at_ms, started_at_ms,
           NULL AS ended_at_ms, worker_id, token
    FROM milepost_job_key CROSS JOIN milepost_live ON milepost_live.id = milepost_job_key.job_id
    WHERE milepost_job_key.key = ?6
    UNION ALL
    SELECT milepost_ended.id, milepost_ended.kind, queue, state, attempt, max_attempts, NULL, started_at_ms, ended_at_ms, NULL, token
    FROM milepost_job_key CROSS JOIN milepost_ended ON milepost_ended.id = milepost_job_key.job_id
    WHERE milepost_job_key.key = ?6
) AS page
CROSS JOIN milepost_job ON milepost_job.id = page.id
WHERE page.id < ?1 AND (?2 IS NULL OR page.state = ?2) AND (?3 IS NULL OR page.kind = ?3)
  AND (?4 IS NULL OR page.queue = ?4)
ORDER BY page.id DESC
LIMIT ?5
