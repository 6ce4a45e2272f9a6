-- Silences the alert with rule $1 and subject $2, if it has an open incident. $3 who, $4 why, $5 for how many ms; null means until it ends
insert into milepost.alert_silence (rule, subject, who, why, until_at)
select i.rule, i.subject, $3::text, $4::text, now() + $5::bigint * interval '1 millisecond'
from milepost.alert_incident i
where i.rule = $1::text and i.subject = $2::text and i.ended_at is null
on conflict (rule, subject) do update
set who = excluded.who, why = excluded.why, made_at = excluded.made_at, until_at = excluded.until_at
returning rule
