-- Deletes targets that no server has had since ?1.
DELETE FROM milepost_alert_target WHERE seen_at_ms < ?1
