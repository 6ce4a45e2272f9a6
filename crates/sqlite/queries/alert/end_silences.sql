-- Deletes silences that have expired, and those of incidents that have ended. ?1 now
DELETE FROM milepost_alert_silence AS s
WHERE s.until_at_ms <= ?1
   OR s.until_at_ms IS NULL AND NOT EXISTS (
       SELECT 1 FROM milepost_alert_incident i WHERE i.rule = s.rule AND i.subject = s.subject AND i.ended_at_ms IS NULL
   )
