-- Edits the request of a job; NULL: as before. ?1 job, ?2 payload, ?3 priority, ?4 max attempts
UPDATE milepost_job
SET payload = coalesce(?2, payload), priority = coalesce(?3, priority), max_attempts = coalesce(?4, max_attempts)
WHERE id = ?1
