-- Deletes history of batch ?1, ?2 entries at most.
DELETE FROM milepost_batch_history WHERE pos IN (
    SELECT pos FROM milepost_batch_history INDEXED BY milepost_batch_history_batch WHERE batch_id = ?1 ORDER BY pos LIMIT ?2
)
