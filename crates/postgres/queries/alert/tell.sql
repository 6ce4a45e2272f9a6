-- Records that target $1 was told about incidents $2, and what ($3). Incidents that were deleted meanwhile are skipped.
insert into milepost.alert_notice (incident_id, target, stage)
select i.id, $1::text, t.stage
from unnest($2::uuid[], $3::text[]) t (id, stage)
join milepost.alert_incident i on i.id = t.id
order by i.id, t.stage
on conflict do nothing
