-- Records that target ?2 was notified of incident ?1 and stage ?3, unless the incident was deleted. ?4 now
INSERT INTO milepost_alert_notice (incident_id, target, stage, sent_at_ms)
SELECT id, ?2, ?3, ?4 FROM milepost_alert_incident WHERE id = ?1
ON CONFLICT DO NOTHING
