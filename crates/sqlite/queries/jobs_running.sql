-- Returns a page of running jobs, newest first. All running jobs are read, which are few.
-- ?1 older than this job, ?2 running, ?3 kind, ?4 queue (NULL: any), ?5 how many
SELECT page.id, page.kind, page.queue, page.state, milepost_job.priority, page.attempt, page.max_attempts, milepost_job.key,
       milepost_job.group_key, milepost_job.created_at_ms, page.ready_at_ms, page.started_at_ms, NULL AS ended_at_ms,
       page.worker_id, page.token, milepost_job.nominal_at_ms
FROM milepost_live AS page INDEXED BY milepost_live_worker
CROSS JOIN milepost_job ON milepost_job.id = page.id
WHERE page.worker_id IS NOT NULL AND page.state = ?2 AND page.id < ?1
  AND (?3 IS NULL OR page.kind = ?3) AND (?4 IS NULL OR page.queue = ?4)
ORDER BY page.id DESC
LIMIT ?5
