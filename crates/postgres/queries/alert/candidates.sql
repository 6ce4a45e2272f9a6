-- Incidents that target $1 may have to be notified of: open ones without a notice, and those with one that ended within $2 ms. $3 limit
select i.id, i.rule, i.subject, i.severity, i.title, i.words, i.command, i.first_seen_at, i.last_seen_at, i.ended_at,
       s.who, s.why, s.made_at, s.until_at,
       b.sent_at is not null as is_notified,
       (select max(n.sent_at) from milepost.alert_incident other
        join milepost.alert_notice n on n.incident_id = other.id and n.target = $1::text and n.stage = 'begun'
        where other.rule = i.rule and other.subject = i.subject) as last_begun_at
from milepost.alert_incident i
left join milepost.alert_notice b on b.incident_id = i.id and b.target = $1::text and b.stage = 'begun'
left join milepost.alert_silence s on s.rule = i.rule and s.subject = i.subject and coalesce(s.until_at > now(), true)
where i.ended_at is null and b.sent_at is null
   or i.ended_at > now() - $2::bigint * interval '1 millisecond' and b.sent_at is not null
      and not exists (
          select from milepost.alert_notice e where e.incident_id = i.id and e.target = $1::text and e.stage = 'ended'
      )
order by i.severity = 'error' desc, i.first_seen_at, i.id
limit $3::bigint
