-- Ends incidents that no server has observed since ?2. ?1 now
UPDATE milepost_alert_incident SET ended_at_ms = ?1 WHERE ended_at_ms IS NULL AND last_seen_at_ms <= ?2
