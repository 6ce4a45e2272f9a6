-- Returns a page of jobs that ended without success, newest first.
-- ?1 older than this job, ?2 state (canceled or skipped), ?3 kind, ?4 queue (NULL: any), ?5 how many
SELECT page.id, page.kind, page.queue, page.state, milepost_job.priority, page.attempt, page.max_attempts, milepost_job.key,
       milepost_job.group_key, milepost_job.created_at_ms, NULL AS ready_at_ms, page.started_at_ms, page.ended_at_ms,
       NULL AS worker_id, page.token, milepost_job.nominal_at_ms
FROM milepost_ended AS page INDEXED BY milepost_ended_aside
CROSS JOIN milepost_job ON milepost_job.id = page.id
WHERE page.state <> 'succeeded' AND page.state = ?2 AND page.id < ?1
  AND (?3 IS NULL OR page.kind = ?3) AND (?4 IS NULL OR page.queue = ?4)
ORDER BY page.id DESC
LIMIT ?5
