-- Appends one state change to the history.
-- ?1 job, ?2 at, ?3 verb, ?4 state before, ?5 state after, ?6 attempt, ?7 token, ?8 worker,
-- ?9 ready at, ?10 error code, ?11 error message, ?12 note
-- OR FAIL keeps no statement journal: a verb that fails is rolled back as a whole.
INSERT OR FAIL INTO milepost_history (
    job_id, at_ms, verb, from_state, to_state, attempt, token, worker_id, ready_at_ms,
    error_code, error_message, note
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
