-- Returns the tasks of batch ?1 with the locations and states of their jobs, and whether their inner batches exist.
SELECT t.task, t.state, t.child_id, l.state, e.state, j.id IS NOT NULL, c.id IS NOT NULL, t.pre_cnt, t.succeeded, t.failed, t.skipped, t.canceled,
       t.job_id IS NULL AND w.task IS NOT NULL
FROM milepost_batch_task t
LEFT JOIN milepost_job j ON j.id = t.job_id
LEFT JOIN milepost_live l ON l.id = t.job_id
LEFT JOIN milepost_ended e ON e.id = t.job_id
LEFT JOIN milepost_batch c ON c.id = t.child_id
LEFT JOIN milepost_batch_wait w ON w.batch_id = t.batch_id AND w.task = t.task
WHERE t.batch_id = ?1 ORDER BY t.task
