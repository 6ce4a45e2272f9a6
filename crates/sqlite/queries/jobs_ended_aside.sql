-- A page of jobs that ended without success, newest first.
-- ?1 older than this job, ?2 state (canceled or skipped), ?3 kind, ?4 queue (NULL: any), ?5 how many
SELECT page.id, page.kind, page.queue, page.state, job.priority, page.attempt, page.max_attempts, job.key,
       job.group_key, job.created_at_ms, NULL AS ready_at_ms, page.started_at_ms, page.ended_at_ms,
       NULL AS worker_id, page.token, job.nominal_at_ms
FROM ended AS page INDEXED BY ended_aside
CROSS JOIN job ON job.id = page.id
WHERE page.state <> 'succeeded' AND page.state = ?2 AND page.id < ?1
  AND (?3 IS NULL OR page.kind = ?3) AND (?4 IS NULL OR page.queue = ?4)
ORDER BY page.id DESC
LIMIT ?5
