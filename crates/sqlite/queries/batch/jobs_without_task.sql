-- Returns jobs that were created for tasks of batch ?1 that its version no longer contains, ?2 at most.
SELECT id FROM milepost_job INDEXED BY milepost_job_batch WHERE batch_id = ?1 AND task IS NULL LIMIT ?2
