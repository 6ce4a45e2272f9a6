-- Changes the state of a task. ?1 batch, ?2 task, ?3 state, ?4 its job, ?5 its batch, ?6 generation; NULL: as before
-- OR FAIL keeps no statement journal: a verb that fails is rolled back as a whole.
UPDATE OR FAIL milepost_batch_task
SET state = ?3, job_id = coalesce(?4, job_id), child_id = coalesce(?5, child_id), generation = coalesce(?6, generation)
WHERE batch_id = ?1 AND task = ?2
