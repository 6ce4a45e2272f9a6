-- Gives the tasks of batch ?1, set aside with the numbers of version ?2, those of version ?3. What is due is to be decided anew.
UPDATE milepost_batch_task SET state = iif(state = 'due', 'waiting', state), task = (
    SELECT n.task
    FROM milepost_dag_task o
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.task = -1 - milepost_batch_task.task
)
WHERE batch_id = ?1
