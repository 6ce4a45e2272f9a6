-- Returns a task with its state. ?1 batch, ?2 task
SELECT task, state, job_id, child_id, pre_cnt, succeeded, failed, skipped, canceled
FROM milepost_batch_task WHERE batch_id = ?1 AND task = ?2
