-- Removes the job and the inner batch from a task. ?1 batch, ?2 task
UPDATE milepost_batch_task SET job_id = NULL, child_id = NULL WHERE batch_id = ?1 AND task = ?2
