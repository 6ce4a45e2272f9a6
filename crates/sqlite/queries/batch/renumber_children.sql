-- Gives the inner batches of batch ?1 the parent task numbers of version ?3 in place of those of version ?2; NULL: the new version has no such task.
UPDATE milepost_batch INDEXED BY milepost_batch_parent SET parent_task = (
    SELECT n.task
    FROM milepost_dag_task o
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.task = milepost_batch.parent_task
)
WHERE parent_id = ?1 AND parent_task IS NOT NULL
