-- Deletes silences that have expired, and those of incidents that have ended.
delete from milepost.alert_silence s
where s.until_at <= now()
   or s.until_at is null and not exists (
       select from milepost.alert_incident i where i.rule = s.rule and i.subject = s.subject and i.ended_at is null
   )
