-- Gives jobs of batch ?1 the numbers that their tasks, which have those of version ?2, have in version ?3; NULL: it does not have them.
UPDATE milepost_job INDEXED BY milepost_job_batch SET task = (
    SELECT n.task
    FROM milepost_dag_task o
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.task = milepost_job.task
)
WHERE batch_id = ?1 AND task IS NOT NULL
