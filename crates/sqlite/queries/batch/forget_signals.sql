-- Deletes signals of batch ?1, ?2 at most.
DELETE FROM milepost_batch_signal WHERE pos IN (SELECT pos FROM milepost_batch_signal WHERE batch_id = ?1 LIMIT ?2)
