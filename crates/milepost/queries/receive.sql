-- Receives an event, if it is the next one of its aggregate. $1: an object, as JSON text: consumer, and the event, whose payload's text is kept.
select json_build_object('verdict', r.verdict, 'more', r.more)::text as answer
from (select c ->> 'consumer' as consumer, c -> 'event' as event from (select $1::text::json) a(c)) i
cross join lateral milepost.receive(
    i.consumer, i.event ->> 'aggregate_type', i.event ->> 'aggregate_id', (i.event ->> 'aggregate_seq')::bigint,
    (i.event ->> 'event_id')::uuid, i.event ->> 'event_type', i.event -> 'payload', (i.event ->> 'headers')::jsonb,
    (i.event ->> 'emitted_at')::timestamptz
) r
