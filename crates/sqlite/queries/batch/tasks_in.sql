-- Returns the tasks of batch ?1 in the given states (?2, a JSON array).
SELECT task, state, job_id, child_id, pre_cnt, succeeded, failed, skipped, canceled
FROM milepost_batch_task WHERE batch_id = ?1 AND state IN (SELECT value FROM json_each(?2)) ORDER BY task
