-- Parked aggregates with their first events. $1 the subscription (null: all), $2 how many
select a.subscription, a.parked_at, a.deliveries, a.next_delivery_at, a.why,
       (select count(*) from milepost.parked_event p
        where p.subscription = a.subscription and p.aggregate_type = a.aggregate_type and p.aggregate_id = a.aggregate_id) as events,
       f.edited is not null as edited, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type,
       e.headers::text as headers, coalesce(f.edited, e.payload)::text as payload, e.emitted_at
from milepost.parked_aggregate a
cross join lateral (
    select p.pos, p.edited from milepost.parked_event p
    where p.subscription = a.subscription and p.aggregate_type = a.aggregate_type and p.aggregate_id = a.aggregate_id
    order by p.pos limit 1
) f
join milepost.event e on e.slot = a.slot and e.pos = f.pos
where $1::text is null or a.subscription = $1
order by a.parked_at, a.subscription, a.aggregate_type, a.aggregate_id
limit $2
