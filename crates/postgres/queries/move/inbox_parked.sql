-- Imports events that wait for a missing one. $7 headers and $8 payloads, as JSON text.
insert into milepost.inbox_parked (consumer, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, headers, payload, emitted_at,
                                   parked_at)
select r.consumer, r.event_id, r.aggregate_type, r.aggregate_id, r.aggregate_seq, r.event_type, r.headers::jsonb, r.payload::json,
       r.emitted_at, r.parked_at
from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::timestamptz[],
            $10::timestamptz[])
    as r(consumer, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, headers, payload, emitted_at, parked_at)
