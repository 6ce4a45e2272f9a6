-- Keeps how a job ended; its row in live goes next. ?1 job, ?2 state, ?3 now, ?4 result
-- OR FAIL keeps no journal of the statement: a verb that fails is undone as a whole.
INSERT OR FAIL INTO milepost_ended (id, kind, queue, state, attempt, max_attempts, token, ended_at_ms, started_at_ms, result)
SELECT id, kind, queue, ?2, attempt, max_attempts, token, ?3, started_at_ms, ?4 FROM milepost_live WHERE id = ?1
