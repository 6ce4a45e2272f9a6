-- Says of batches in batch ?1 by the numbers of version ?3 whose tasks they are, which have those of version ?2; NULL: it does not have them.
UPDATE milepost_batch INDEXED BY milepost_batch_parent SET parent_task = (
    SELECT n.task
    FROM milepost_dag_task o
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.task = milepost_batch.parent_task
)
WHERE parent_id = ?1 AND parent_task IS NOT NULL
