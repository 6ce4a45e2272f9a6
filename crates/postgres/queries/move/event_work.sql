-- Imports events that have started work.
insert into milepost.event_work (event_id, subscription, work, work_id, started_at)
select r.event_id, r.subscription, r.work, r.work_id, r.started_at
from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::timestamptz[]) as r(event_id, subscription, work, work_id, started_at)
