-- Lets claims from a queue go on. ?1 queue
UPDATE queue SET paused_at_ms = NULL WHERE name = ?1 AND paused_at_ms IS NOT NULL
