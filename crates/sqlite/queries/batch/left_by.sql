-- Returns the state and the result of a task. ?1 batch, ?2 task, ?3 version
SELECT d.key, t.state, t.child_id, e.result, d.spec -> '$.each' IS NOT NULL
FROM milepost_batch_task t
CROSS JOIN milepost_dag_task d ON d.version_id = ?3 AND d.task = t.task
LEFT JOIN milepost_ended e ON e.id = t.job_id AND e.state = 'succeeded'
WHERE t.batch_id = ?1 AND t.task = ?2
