-- Pauses a subscription. ?1 its name, ?2 why, ?3 now
UPDATE milepost_subscription SET paused_at_ms = coalesce(paused_at_ms, ?3), paused_why = ?2 WHERE name = ?1
