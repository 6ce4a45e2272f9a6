-- Returns a page of jobs in any state, or of pending or succeeded jobs, newest first; other states have separate statements.
-- ?1 older than this job, ?2 state, ?3 kind, ?4 queue (?2 to ?4 NULL: any), ?5 how many
SELECT page.id, page.kind, page.queue, page.state, milepost_job.priority, page.attempt, page.max_attempts, milepost_job.key,
       milepost_job.group_key, milepost_job.created_at_ms, page.ready_at_ms, page.started_at_ms, page.ended_at_ms,
       page.worker_id, page.token, milepost_job.nominal_at_ms
FROM (
    SELECT id, kind, queue, state, attempt, max_attempts, ready_at_ms, started_at_ms, NULL AS ended_at_ms,
           worker_id, token
    FROM milepost_live
    WHERE coalesce(?2, 'pending') = 'pending' AND id < ?1 AND (?2 IS NULL OR state = ?2)
      AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR queue = ?4)
    UNION ALL
    SELECT id, kind, queue, state, attempt, max_attempts, NULL, started_at_ms, ended_at_ms, NULL, token
    FROM milepost_ended
    WHERE coalesce(?2, 'succeeded') = 'succeeded' AND id < ?1 AND (?2 IS NULL OR state = ?2)
      AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR queue = ?4)
    ORDER BY id DESC
    LIMIT ?5
) AS page
CROSS JOIN milepost_job ON milepost_job.id = page.id
ORDER BY page.id DESC
