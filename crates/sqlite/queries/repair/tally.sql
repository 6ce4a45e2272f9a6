-- Sets the counters of a task's predecessors. ?1 batch, ?2 task, ?3 open, ?4 succeeded, ?5 failed, ?6 skipped, ?7 canceled
UPDATE milepost_batch_task SET pre_cnt = ?3, succeeded = ?4, failed = ?5, skipped = ?6, canceled = ?7
WHERE batch_id = ?1 AND task = ?2
