-- Events that were given up. $1 the subscription (null: all), $2 to $4 the place before which (null: from the newest on), $5 how many.
-- They are in order before what they say is looked for, so that this is done for one page.
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
