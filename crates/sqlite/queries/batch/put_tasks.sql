-- Stores the tasks of batch ?1, a run of version ?2. Tasks without predecessors are due.
INSERT INTO milepost_batch_task (batch_id, task, pre_cnt, state)
SELECT ?1, task, pre_cnt, iif(pre_cnt = 0, 'due', 'waiting') FROM milepost_dag_task WHERE version_id = ?2 ORDER BY task
