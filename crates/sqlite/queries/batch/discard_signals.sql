-- Discards the signals that a task did not use. ?1 batch, ?2 version, ?3 task
UPDATE milepost_batch_signal SET state = 'unused'
WHERE batch_id = ?1 AND state = 'kept'
  AND name = (SELECT d.spec ->> '$.wait.signal' FROM milepost_dag_task d WHERE d.version_id = ?2 AND d.task = ?3)
