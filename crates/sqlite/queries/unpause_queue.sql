-- Resumes claims from a queue. ?1 queue
DELETE FROM milepost_queue WHERE name = ?1 AND paused_at_ms IS NOT NULL
