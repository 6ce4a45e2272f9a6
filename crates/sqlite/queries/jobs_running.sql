-- A page of running jobs, newest first: all that runs is read, which is little.
-- ?1 older than this job, ?2 running, ?3 kind, ?4 queue (NULL: any), ?5 how many
SELECT page.id, page.kind, page.queue, page.state, job.priority, page.attempt, page.max_attempts, job.key,
       job.group_key, job.created_at_ms, page.ready_at_ms, page.started_at_ms, NULL AS ended_at_ms,
       page.worker_id, page.token, job.nominal_at_ms
FROM live AS page INDEXED BY live_worker
CROSS JOIN job ON job.id = page.id
WHERE page.worker_id IS NOT NULL AND page.state = ?2 AND page.id < ?1
  AND (?3 IS NULL OR page.kind = ?3) AND (?4 IS NULL OR page.queue = ?4)
ORDER BY page.id DESC
LIMIT ?5
