-- Resets a task so that it is decided again. ?1 batch, ?2 task, ?3 generation
UPDATE milepost_batch_task SET state = 'waiting', job_id = NULL, child_id = NULL, generation = ?3
WHERE batch_id = ?1 AND task = ?2
