-- Returns the tasks of batch ?1 whose keys are in version ?2 and not in version ?3, with their keys.
SELECT t.task, t.state, t.job_id, t.child_id, t.pre_cnt, t.succeeded, t.failed, t.skipped, t.canceled, o.key
FROM milepost_batch_task t
CROSS JOIN milepost_dag_task o ON o.version_id = ?2 AND o.task = t.task
WHERE t.batch_id = ?1 AND NOT EXISTS (SELECT 1 FROM milepost_dag_task n WHERE n.version_id = ?3 AND n.key = o.key)
ORDER BY t.task
