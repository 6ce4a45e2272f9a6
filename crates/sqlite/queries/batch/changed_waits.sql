-- Returns the tasks of batch ?1 that wait, stopped, and whose wait in version ?3 is another one than in version ?2.
SELECT t.task, t.state, t.job_id, t.child_id, t.pre_cnt, t.succeeded, t.failed, t.skipped, t.canceled
FROM milepost_batch_wait w
CROSS JOIN milepost_batch_task t ON t.batch_id = w.batch_id AND t.task = w.task
CROSS JOIN milepost_dag_task o ON o.version_id = ?2 AND o.task = w.task
CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
WHERE w.batch_id = ?1 AND t.state = 'aborted' AND t.job_id IS NULL AND t.child_id IS NULL
  AND n.spec -> '$.wait' IS NOT o.spec -> '$.wait'
ORDER BY w.task
