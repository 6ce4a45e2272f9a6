-- Incidents, open ones first, errors first, then the newest. $1 also those that have ended, $2 limit
select i.id, i.rule, i.subject, i.severity, i.title, i.words, i.command, i.first_seen_at, i.last_seen_at, i.ended_at,
       s.who, s.why, s.made_at, s.until_at
from milepost.alert_incident i
left join milepost.alert_silence s on s.rule = i.rule and s.subject = i.subject and i.ended_at is null and coalesce(s.until_at > now(), true)
where $1::boolean or i.ended_at is null
order by i.ended_at desc nulls first, i.severity = 'error' desc, i.first_seen_at desc, i.id
limit $2::bigint
