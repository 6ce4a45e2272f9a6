-- Gives the history of batch ?1 the task numbers of version ?3 in place of those of version ?2. Entries of a task that is not in it get its key.
UPDATE milepost_batch_history AS h
SET task = k.task, key = k.key
FROM (
    SELECT e.pos, n.task, iif(n.task IS NULL, coalesce(o.key, e.key), NULL) AS key
    FROM milepost_batch_history e INDEXED BY milepost_batch_history_batch
    LEFT JOIN milepost_dag_task o ON o.version_id = ?2 AND o.task = e.task
    LEFT JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = coalesce(o.key, e.key)
    WHERE e.batch_id = ?1 AND (e.task IS NOT NULL OR e.key IS NOT NULL)
) k
WHERE h.pos = k.pos
