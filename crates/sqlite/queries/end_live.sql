-- Stores the end of a job; the caller deletes its row in live next. ?1 job, ?2 state, ?3 now, ?4 result
-- OR FAIL keeps no statement journal: a verb that fails is rolled back as a whole.
INSERT OR FAIL INTO milepost_ended (id, kind, queue, state, attempt, max_attempts, token, ended_at_ms, started_at_ms, result)
SELECT id, kind, queue, ?2, attempt, max_attempts, token, ?3, started_at_ms, ?4 FROM milepost_live WHERE id = ?1
