-- Moves a job into a state in which no worker runs it.
-- ?1 job, ?2 state, ?3 ready at, ?4 due at, ?5 attempt, ?6 max attempts at least (NULL: as before), ?7 now
-- OR FAIL keeps no statement journal: a verb that fails is rolled back as a whole.
UPDATE OR FAIL milepost_live
SET state = ?2, ready_at_ms = ?3, due_at_ms = ?4, timed = iif(?4 > ?7, 1, NULL),
    attempt = ?5, max_attempts = max(max_attempts, coalesce(?6, 0)),
    worker_id = NULL, claim_id = NULL, started_at_ms = NULL,
    stop_verb = NULL, stop_at_ms = NULL, stop_note = NULL
WHERE id = ?1
