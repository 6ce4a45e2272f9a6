-- Resumes a paused subscription. ?1 its name
UPDATE milepost_subscription SET paused_at_ms = NULL, paused_why = NULL WHERE name = ?1 AND paused_at_ms IS NOT NULL
