-- Returns names of signals that tasks of a batch wait for. ?1 batch, ?2 how many
SELECT d.spec ->> '$.wait.signal'
FROM milepost_batch b
CROSS JOIN milepost_dag_task d INDEXED BY milepost_dag_task_signal ON d.version_id = b.version_id AND d.spec ->> '$.wait.signal' IS NOT NULL
WHERE b.id = ?1 AND b.items_of IS NULL ORDER BY 1 LIMIT ?2
