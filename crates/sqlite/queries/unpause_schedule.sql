-- Resumes a paused schedule, if it still has this version. ?1 name, ?2 version, ?3 next tick
UPDATE milepost_schedule SET paused_at_ms = NULL, next_at_ms = ?3, version = version + 1
WHERE name = ?1 AND version = ?2 AND paused_at_ms IS NOT NULL
