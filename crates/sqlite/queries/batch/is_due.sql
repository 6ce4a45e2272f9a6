-- Returns whether a task is due. ?1 batch, ?2 task
SELECT 1 FROM milepost_batch_task WHERE batch_id = ?1 AND task = ?2 AND state = 'due'
