-- A parked aggregate: $1 subscription, $2 the aggregate's type, $3 its id.
select jsonb_build_object('events', (select count(*) from milepost.parked_event e
                                     where (e.subscription, e.aggregate_type, e.aggregate_id) = ($1, $2, $3)),
                          'first', f.event_id, 'edited', f.edited::text, 'deliveries', a.deliveries,
                          'next_delivery_at', a.next_delivery_at, 'failed', a.why)::text
from milepost.parked_aggregate a
left join lateral (
    select p.event_id, p.edited from milepost.parked_event p
    where (p.subscription, p.aggregate_type, p.aggregate_id) = ($1, $2, $3)
    order by p.pos limit 1
) f on true
where (a.subscription, a.aggregate_type, a.aggregate_id) = ($1, $2, $3)
