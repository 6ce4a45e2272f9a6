-- Returns the state and the result of a task. ?1 batch, ?2 task, ?3 version
SELECT d.key, t.state, t.child_id, coalesce(e.result, w.output), d.spec -> '$.each' IS NOT NULL
FROM milepost_batch_task t
CROSS JOIN milepost_dag_task d ON d.version_id = ?3 AND d.task = t.task
LEFT JOIN milepost_ended e ON e.id = t.job_id AND e.state = 'succeeded'
LEFT JOIN milepost_batch_wait w ON t.job_id IS NULL AND w.batch_id = t.batch_id AND w.task = t.task
WHERE t.batch_id = ?1 AND t.task = ?2
