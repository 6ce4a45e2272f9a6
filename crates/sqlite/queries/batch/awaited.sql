-- Returns the wait, as it is defined, of the task that waits for a signal, and the state of that task. ?1 batch, ?2 name
SELECT d.spec -> '$.wait', t.state
FROM milepost_batch b
CROSS JOIN milepost_dag_task d INDEXED BY milepost_dag_task_signal ON d.version_id = b.version_id AND d.spec ->> '$.wait.signal' = ?2
CROSS JOIN milepost_batch_task t ON t.batch_id = b.id AND t.task = d.task
WHERE b.id = ?1 AND b.items_of IS NULL
