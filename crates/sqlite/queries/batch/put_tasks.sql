-- Stores the tasks of batch ?1, which is of version ?2: those that wait for none are due.
INSERT INTO milepost_batch_task (batch_id, task, pre_cnt, state)
SELECT ?1, task, pre_cnt, iif(pre_cnt = 0, 'due', 'waiting') FROM milepost_dag_task WHERE version_id = ?2 ORDER BY task
