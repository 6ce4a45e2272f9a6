-- Whether a queue is paused. ?1 queue
SELECT EXISTS (SELECT 1 FROM queue WHERE name = ?1 AND paused_at_ms IS NOT NULL)
