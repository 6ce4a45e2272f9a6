-- Stores the request of a job; changes nothing if the job exists.
-- ?1 id, ?2 kind, ?3 queue, ?4 payload, ?5 key, ?6 group, ?7 priority, ?8 max attempts, ?9 timeout, ?10 now, ?11 its tick,
-- ?12 its batch, ?13 its task, ?14 its trace
INSERT INTO milepost_job (id, kind, queue, payload, key, group_key, priority, max_attempts, timeout_ms, created_at_ms,
                 nominal_at_ms, batch_id, task, traceparent)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT DO NOTHING
