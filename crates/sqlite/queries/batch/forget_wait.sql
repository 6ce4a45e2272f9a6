-- Deletes the wait of a task. ?1 batch, ?2 task
DELETE FROM milepost_batch_wait WHERE batch_id = ?1 AND task = ?2
