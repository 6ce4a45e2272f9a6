-- Records that target $1 was notified of incidents $2, and of which stage ($3). Deleted incidents are skipped.
insert into milepost.alert_notice (incident_id, target, stage)
select i.id, $1::text, t.stage
from unnest($2::uuid[], $3::text[]) t (id, stage)
join milepost.alert_incident i on i.id = t.id
order by i.id, t.stage
on conflict do nothing
