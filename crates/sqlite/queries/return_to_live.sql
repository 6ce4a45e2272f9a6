-- Moves an ended job back to live, with its last token. ?1 job, ?2 state, ?3 ready at, ?4 due at, ?5 max attempts, ?6 now
INSERT INTO milepost_live (id, kind, queue, priority, state, ready_at_ms, due_at_ms, attempt, max_attempts, token, group_key, timed)
SELECT milepost_ended.id, milepost_ended.kind, milepost_ended.queue, milepost_job.priority, ?2, ?3, ?4, milepost_ended.attempt, ?5, milepost_ended.token, milepost_job.group_key, iif(?4 > ?6, 1, NULL)
FROM milepost_ended JOIN milepost_job ON milepost_job.id = milepost_ended.id WHERE milepost_ended.id = ?1
