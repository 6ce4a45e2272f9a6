-- Jobs that were made for tasks of batch ?1 which its version does not have any more, ?2 at most.
SELECT id FROM milepost_job INDEXED BY milepost_job_batch WHERE batch_id = ?1 AND task IS NULL LIMIT ?2
