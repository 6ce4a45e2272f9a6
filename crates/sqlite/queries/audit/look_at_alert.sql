-- The silence of the alert with rule ?1 and subject ?2.
SELECT json_object('until_ms', until_at_ms) FROM milepost_alert_silence WHERE rule = ?1 AND subject = ?2
