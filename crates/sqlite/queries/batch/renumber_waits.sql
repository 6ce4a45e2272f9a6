-- Changes the task numbers of waits of batch ?1, which set_waits_aside has negated, from version ?2 to version ?3.
UPDATE milepost_batch_wait SET task = (
    SELECT n.task
    FROM milepost_dag_task o
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.task = -1 - milepost_batch_wait.task
)
WHERE batch_id = ?1
