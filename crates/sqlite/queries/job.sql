-- Everything about one job. ?1 job
SELECT page.id, page.kind, page.queue, page.state, job.priority, page.attempt, page.max_attempts, job.key,
       job.group_key, job.created_at_ms, page.ready_at_ms, page.started_at_ms, page.ended_at_ms,
       page.worker_id, page.token, job.nominal_at_ms,
       job.payload, page.result, progress.done, progress.total, progress.message, progress.checkpoint,
       page.stop_verb
FROM (
    SELECT id, kind, queue, state, attempt, max_attempts, ready_at_ms, started_at_ms, NULL AS ended_at_ms,
           worker_id, token, NULL AS result, stop_verb
    FROM live
    WHERE id = ?1
    UNION ALL
    SELECT id, kind, queue, state, attempt, max_attempts, NULL, started_at_ms, ended_at_ms, NULL, token, result, NULL
    FROM ended
    WHERE id = ?1
) AS page
CROSS JOIN job ON job.id = page.id
LEFT JOIN progress ON progress.job_id = page.id
