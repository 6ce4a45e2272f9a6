-- Stores the tasks of version ?2 that batch ?1 does not have, in generation ?3.
INSERT INTO milepost_batch_task (batch_id, task, generation, pre_cnt, state)
SELECT ?1, n.task, ?3, n.pre_cnt, 'waiting'
FROM milepost_dag_task n
WHERE n.version_id = ?2 AND NOT EXISTS (SELECT 1 FROM milepost_batch_task t WHERE t.batch_id = ?1 AND t.task = n.task)
ORDER BY n.task
