-- Deletes incidents that ended before ?1. ?2 limit
DELETE FROM milepost_alert_incident WHERE id IN (
    SELECT id FROM milepost_alert_incident WHERE ended_at_ms < ?1 ORDER BY ended_at_ms, id LIMIT ?2
)
