-- Parked events that are due, of at most $3 aggregates in slots that a publisher ($2) holds: only the first event if it has
-- failed, otherwise up to $4; $5 events in all. Without their payloads, unless an operator has edited them.
with due as materialized (
    select a.slot, s.token, a.aggregate_type, a.aggregate_id, a.deliveries, a.next_delivery_at
    from milepost.parked_aggregate a
    join milepost.subscription_slot s on s.subscription = a.subscription and s.slot = a.slot
    where a.subscription = $1 and s.owner = $2 and a.next_delivery_at <= clock_timestamp()
    order by a.next_delivery_at
    limit $3
)
select d.slot, d.token, d.deliveries, d.next_delivery_at, e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type,
       e.headers::text as headers, p.edited::text as edited, e.emitted_at, p.replayed
from due d
cross join lateral (
    select p.pos, p.edited, p.replayed from milepost.parked_event p
    where p.subscription = $1 and p.aggregate_type = d.aggregate_type and p.aggregate_id = d.aggregate_id
    order by p.pos
    limit case when d.deliveries > 0 then 1 else $4 end
) p
join milepost.event e on e.slot = d.slot and e.pos = p.pos
order by d.next_delivery_at, d.aggregate_type, d.aggregate_id, p.pos
limit $5
