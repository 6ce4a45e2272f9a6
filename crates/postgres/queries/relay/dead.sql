-- Events that were given up. $1 the subscription (null: all), $2 how many
select d.subscription, d.dead_at, d.deliveries, d.why, d.skipped, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type,
       e.headers::text as headers, coalesce(d.edited, e.payload)::text as payload, e.emitted_at
from milepost.dead_event d
join milepost.event e on e.slot = d.slot and e.pos = d.pos
where $1::text is null or d.subscription = $1
order by d.dead_at desc, d.pos desc
limit $2
