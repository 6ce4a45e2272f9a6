-- Ends the silence of the alert with rule ?1 and subject ?2.
DELETE FROM milepost_alert_silence WHERE rule = ?1 AND subject = ?2
