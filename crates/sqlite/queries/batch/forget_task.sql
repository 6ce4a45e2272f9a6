-- Deletes a task. ?1 batch, ?2 task
DELETE FROM milepost_batch_task WHERE batch_id = ?1 AND task = ?2
