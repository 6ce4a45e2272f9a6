-- Imports dead letters of inboxes. $10 headers and $11 payloads, as JSON text.
insert into milepost.inbox_dead (pos, consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, headers,
                                 payload, emitted_at, dead_at)
overriding system value
select r.pos, r.consumer, r.aggregate_type, r.aggregate_id, r.aggregate_seq, r.seq_to, r.reason, r.why, r.event_id, r.event_type,
       r.headers::jsonb, r.payload::json, r.emitted_at, r.dead_at
from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::uuid[], $10::text[],
            $11::text[], $12::text[], $13::timestamptz[], $14::timestamptz[])
    as r(pos, consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, headers, payload, event_type, emitted_at,
         dead_at)
