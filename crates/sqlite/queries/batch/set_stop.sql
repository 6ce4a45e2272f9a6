-- Stops or resumes batch ?1. ?2 stop or NULL, ?3 now
UPDATE milepost_batch SET stop = ?2, updated_at_ms = ?3 WHERE id = ?1
