-- Silences the alert with rule ?1 and subject ?2, if it has an open incident. ?3 who, ?4 why, ?5 now, ?6 the end; NULL means until it ends
INSERT INTO milepost_alert_silence (rule, subject, who, why, made_at_ms, until_at_ms)
SELECT rule, subject, ?3, ?4, ?5, ?6 FROM milepost_alert_incident WHERE rule = ?1 AND subject = ?2 AND ended_at_ms IS NULL
ON CONFLICT (rule, subject) DO UPDATE
SET who = excluded.who, why = excluded.why, made_at_ms = excluded.made_at_ms, until_at_ms = excluded.until_at_ms
