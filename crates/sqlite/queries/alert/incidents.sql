-- Incidents, open ones first, errors first, then the newest. ?1 also those that have ended, ?2 limit, ?3 now
SELECT i.id, i.rule, i.subject, i.severity, i.title, i.words, i.command, i.first_seen_at_ms, i.last_seen_at_ms, i.ended_at_ms,
       s.who, s.why, s.made_at_ms, s.until_at_ms
FROM milepost_alert_incident i
LEFT JOIN milepost_alert_silence s
    ON s.rule = i.rule AND s.subject = i.subject AND i.ended_at_ms IS NULL AND coalesce(s.until_at_ms > ?3, 1)
WHERE ?1 OR i.ended_at_ms IS NULL
ORDER BY i.ended_at_ms DESC NULLS FIRST, i.severity = 'error' DESC, i.first_seen_at_ms DESC, i.id
LIMIT ?2
