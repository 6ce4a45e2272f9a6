-- Replaces the request of a job that has not started. ?1 job, ?2 payload, ?3 priority, ?4 max attempts, ?5 timeout, ?6 trace
UPDATE milepost_job SET payload = ?2, priority = ?3, max_attempts = ?4, timeout_ms = ?5, traceparent = ?6 WHERE id = ?1
