-- Incidents that target ?1 may have to be notified of: open ones without a notice, and those with one that ended after ?2. ?3 limit, ?4 now
SELECT i.id, i.rule, i.subject, i.severity, i.title, i.words, i.command, i.first_seen_at_ms, i.last_seen_at_ms, i.ended_at_ms,
       s.who, s.why, s.made_at_ms, s.until_at_ms,
       b.sent_at_ms IS NOT NULL,
       (SELECT max(n.sent_at_ms) FROM milepost_alert_incident other
        JOIN milepost_alert_notice n ON n.incident_id = other.id AND n.target = ?1 AND n.stage = 'begun'
        WHERE other.rule = i.rule AND other.subject = i.subject)
FROM milepost_alert_incident i
LEFT JOIN milepost_alert_notice b ON b.incident_id = i.id AND b.target = ?1 AND b.stage = 'begun'
LEFT JOIN milepost_alert_silence s ON s.rule = i.rule AND s.subject = i.subject AND coalesce(s.until_at_ms > ?4, 1)
WHERE i.ended_at_ms IS NULL AND b.sent_at_ms IS NULL
   OR i.ended_at_ms > ?2 AND b.sent_at_ms IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM milepost_alert_notice e WHERE e.incident_id = i.id AND e.target = ?1 AND e.stage = 'ended')
ORDER BY i.severity = 'error' DESC, i.first_seen_at_ms, i.id
LIMIT ?3
