-- Changes the task numbers of batch ?1, which set_aside has negated, from version ?2 to version ?3. Due tasks become waiting and are
-- decided again.
UPDATE milepost_batch_task SET state = iif(state = 'due', 'waiting', state), task = (
    SELECT n.task
    FROM milepost_dag_task o
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.task = -1 - milepost_batch_task.task
)
WHERE batch_id = ?1
