-- Imports dead letters of relays. $8 edited payloads, as JSON text. The log was imported before.
insert into milepost.dead_event (subscription, event_id, slot, pos, dead_at, deliveries, why, skipped, edited)
select r.subscription, r.event_id, e.slot, r.pos, r.dead_at, r.deliveries, r.why, r.skipped, r.edited::json
from unnest($1::text[], $2::uuid[], $3::bigint[], $4::timestamptz[], $5::int[], $6::text[], $7::boolean[], $8::text[])
    as r(subscription, event_id, pos, dead_at, deliveries, why, skipped, edited)
left join milepost.event e on e.event_id = r.event_id
