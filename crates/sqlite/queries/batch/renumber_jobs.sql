-- Changes the task numbers of the jobs of batch ?1 from version ?2 to version ?3; NULL: that version does not contain the task.
UPDATE milepost_job INDEXED BY milepost_job_batch SET task = (
    SELECT n.task
    FROM milepost_dag_task o
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.task = milepost_job.task
)
WHERE batch_id = ?1 AND task IS NOT NULL
