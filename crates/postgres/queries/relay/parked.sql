-- Parked aggregates with their first events. $1 subscription (null: all), $2 to $5 after this position (null: from the first
-- one), $6 limit. They are sorted before their events are looked up, so that only the events of one page are read.
select a.subscription, a.parked_at, a.deliveries, a.next_delivery_at, a.why,
       (select count(*) from milepost.parked_event p
        where p.subscription = a.subscription and p.aggregate_type = a.aggregate_type and p.aggregate_id = a.aggregate_id) as events,
       f.edited is not null as edited, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type,
       e.headers::text as headers, coalesce(f.edited, e.payload)::text as payload, e.emitted_at
from (
    select * from milepost.parked_aggregate
    where ($1::text is null or subscription = $1)
      and (parked_at, subscription, aggregate_type, aggregate_id) > (coalesce($2::timestamptz, '-infinity'), $3::text, $4::text, $5::text)
    order by parked_at, subscription, aggregate_type, aggregate_id
) a
cross join lateral (
    select p.pos, p.edited from milepost.parked_event p
    where p.subscription = a.subscription and p.aggregate_type = a.aggregate_type and p.aggregate_id = a.aggregate_id
    order by p.pos limit 1
) f
join milepost.event e on e.slot = a.slot and e.pos = f.pos
order by a.parked_at, a.subscription, a.aggregate_type, a.aggregate_id
limit $6
