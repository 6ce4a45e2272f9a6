-- Returns a job with its details. ?1 job
SELECT page.id, page.kind, page.queue, page.state, milepost_job.priority, page.attempt, page.max_attempts, milepost_job.key,
       milepost_job.group_key, milepost_job.created_at_ms, page.ready_at_ms, page.started_at_ms, page.ended_at_ms,
       page.worker_id, page.token, milepost_job.nominal_at_ms,
       milepost_job.payload, page.result, milepost_progress.done, milepost_progress.total, milepost_progress.message, milepost_progress.checkpoint,
       page.stop_verb, milepost_job.traceparent
FROM (
    SELECT id, kind, queue, state, attempt, max_attempts, ready_at_ms, started_at_ms, NULL AS ended_at_ms,
           worker_id, token, NULL AS result, stop_verb
    FROM milepost_live
    WHERE id = ?1
    UNION ALL
    SELECT id, kind, queue, state, attempt, max_attempts, NULL, started_at_ms, ended_at_ms, NULL, token, result, NULL
    FROM milepost_ended
    WHERE id = ?1
) AS page
CROSS JOIN milepost_job ON milepost_job.id = page.id
LEFT JOIN milepost_progress ON milepost_progress.job_id = page.id
