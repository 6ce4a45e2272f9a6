-- Returns the task for which a job was created, its key, and whether the job is still that task's current one. ?1 job
SELECT t.batch_id, coalesce(d.key, CAST(t.task AS TEXT)), t.job_id = j.id
FROM milepost_job j
CROSS JOIN milepost_batch_task t ON t.batch_id = j.batch_id AND t.task = j.task
CROSS JOIN milepost_batch b ON b.id = t.batch_id
LEFT JOIN milepost_dag_task d ON d.version_id = b.version_id AND d.task = t.task AND b.items_of IS NULL
WHERE j.id = ?1
