-- The targets of alerts.
SELECT name, seen_at_ms, sent_at_ms, failing_since_ms, failures, last_error, next_at_ms FROM milepost_alert_target ORDER BY name
