-- Deletes the notices of the incidents that prune_incidents deletes. ?1 ended before this, ?2 limit
DELETE FROM milepost_alert_notice WHERE incident_id IN (
    SELECT id FROM milepost_alert_incident WHERE ended_at_ms < ?1 ORDER BY ended_at_ms, id LIMIT ?2
)
