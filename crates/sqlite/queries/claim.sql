-- Assigns a ready job to a worker. ?1 job, ?2 attempt, ?3 token, ?4 worker, ?5 claim id, ?6 now
-- OR FAIL keeps no statement journal: a verb that fails is rolled back as a whole.
UPDATE OR FAIL milepost_live
SET state = 'running', ready_at_ms = NULL, attempt = ?2, token = ?3, worker_id = ?4, claim_id = ?5,
    started_at_ms = ?6, start_reserved = NULL
WHERE id = ?1
