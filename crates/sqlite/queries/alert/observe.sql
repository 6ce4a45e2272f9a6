-- Begins an incident for an alert that has none, and renews one that exists. ?1 a new id, ?2 the rule, ?3 the subject, ?4 the severity, ?5 the title,
-- ?6 words, ?7 the command, ?8 now
INSERT INTO milepost_alert_incident (id, rule, subject, severity, title, words, command, first_seen_at_ms, last_seen_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
ON CONFLICT (rule, subject) WHERE ended_at_ms IS NULL DO UPDATE
SET severity = excluded.severity, title = excluded.title, words = excluded.words, command = excluded.command,
    last_seen_at_ms = max(last_seen_at_ms, excluded.last_seen_at_ms)
