-- Discards the signals of batch ?1 that version ?3 uses for another task than version ?2, or with other rules for the payload.
UPDATE milepost_batch_signal SET state = 'unused'
WHERE batch_id = ?1 AND state = 'kept' AND NOT EXISTS (
    SELECT 1
    FROM milepost_dag_task o INDEXED BY milepost_dag_task_signal
    CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
    WHERE o.version_id = ?2 AND o.spec ->> '$.wait.signal' = milepost_batch_signal.name
      AND n.spec ->> '$.wait.signal' = o.spec ->> '$.wait.signal'
      AND n.spec -> '$.wait.choices' IS o.spec -> '$.wait.choices'
      AND n.spec -> '$.wait.schema' IS o.spec -> '$.wait.schema'
)
