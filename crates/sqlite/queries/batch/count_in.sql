-- Subtracts ended predecessors from a task's counter. ?1 batch, ?2 task, ?3 succeeded, ?4 failed, ?5 skipped, ?6 canceled: how many of each
-- OR FAIL keeps no statement journal: a verb that fails is rolled back as a whole.
UPDATE OR FAIL milepost_batch_task
SET pre_cnt = pre_cnt - (?3 + ?4 + ?5 + ?6), succeeded = succeeded + ?3, failed = failed + ?4, skipped = skipped + ?5,
    canceled = canceled + ?6
WHERE batch_id = ?1 AND task = ?2
RETURNING state, pre_cnt, succeeded, failed, skipped, canceled
