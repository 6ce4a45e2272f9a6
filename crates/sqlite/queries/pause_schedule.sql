-- Pauses a schedule. ?1 name, ?2 now
UPDATE milepost_schedule SET paused_at_ms = ?2, version = version + 1 WHERE name = ?1 AND paused_at_ms IS NULL
