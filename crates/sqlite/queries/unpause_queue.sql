-- Lets claims from a queue go on. ?1 queue
DELETE FROM queue WHERE name = ?1 AND paused_at_ms IS NOT NULL
