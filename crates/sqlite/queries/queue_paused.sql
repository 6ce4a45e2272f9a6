-- Returns whether a queue is paused. ?1 queue
SELECT EXISTS (SELECT 1 FROM milepost_queue WHERE name = ?1 AND paused_at_ms IS NOT NULL)
