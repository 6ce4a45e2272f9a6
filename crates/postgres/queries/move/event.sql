-- Imports events. $8 headers and $9 payloads, as JSON text. Their aggregates were imported before.
insert into milepost.event (slot, pos, event_id, aggregate_type, aggregate_id, aggregate_seq, emitted_at, event_type, headers, payload)
overriding system value
select a.slot, r.pos, r.event_id, r.aggregate_type, r.aggregate_id, r.aggregate_seq, r.emitted_at, r.event_type, r.headers::jsonb,
       r.payload::json
from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[], $9::text[])
    as r(pos, event_id, aggregate_type, aggregate_id, aggregate_seq, emitted_at, event_type, headers, payload)
left join milepost.aggregate a on a.aggregate_type = r.aggregate_type and a.aggregate_id = r.aggregate_id
