-- Dead letters. $1 subscription (null: all), $2 to $4 before this position (null: from the newest one), $5 limit.
-- They are sorted before their events are looked up, so that only the events of one page are read.
select d.subscription, d.dead_at, d.deliveries, d.why, d.skipped, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type,
       e.headers::text as headers, coalesce(d.edited, e.payload)::text as payload, e.emitted_at
from (
    select * from milepost.dead_event
    where ($1::text is null or subscription = $1)
      and (dead_at, event_id, subscription) < (coalesce($2::timestamptz, 'infinity'), $3::uuid, $4::text)
    order by dead_at desc, event_id desc, subscription desc
) d
join milepost.event e on e.slot = d.slot and e.pos = d.pos
order by d.dead_at desc, d.event_id desc, d.subscription desc
limit $5
