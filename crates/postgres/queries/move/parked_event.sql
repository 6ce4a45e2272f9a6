-- Imports events of such aggregates. $6 edited payloads, as JSON text. $7 whether they are published again. The log was imported before.
insert into milepost.parked_event (subscription, aggregate_type, aggregate_id, pos, slot, event_id, edited, replayed)
select r.subscription, r.aggregate_type, r.aggregate_id, r.pos, e.slot, r.event_id, r.edited::json, r.replayed
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::text[], $7::boolean[])
    as r(subscription, aggregate_type, aggregate_id, pos, event_id, edited, replayed)
left join milepost.event e on e.event_id = r.event_id
