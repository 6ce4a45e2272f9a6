-- Returns the jobs that were created for a task. ?1 batch, ?2 task
SELECT id FROM milepost_job INDEXED BY milepost_job_batch WHERE batch_id = ?1 AND task = ?2
