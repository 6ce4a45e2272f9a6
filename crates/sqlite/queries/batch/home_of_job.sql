-- The task that a job was made for, its key, and whether that task names it still. ?1 job
SELECT t.batch_id, coalesce(d.key, CAST(t.task AS TEXT)), t.job_id = j.id
FROM milepost_job j
CROSS JOIN milepost_batch_task t ON t.batch_id = j.batch_id AND t.task = j.task
CROSS JOIN milepost_batch b ON b.id = t.batch_id
LEFT JOIN milepost_dag_task d ON d.version_id = b.version_id AND d.task = t.task AND b.items_of IS NULL
WHERE j.id = ?1
