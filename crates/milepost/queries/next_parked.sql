-- Receives the event that follows the last one, if the inbox has kept it. $1: an object, as JSON text: consumer, aggregate_type, aggregate_id.
select json_build_object('event', (
    select json_build_object(
        'event_id', p.event_id, 'aggregate_type', c ->> 'aggregate_type', 'aggregate_id', c ->> 'aggregate_id',
        'aggregate_seq', p.aggregate_seq, 'event_type', p.event_type, 'payload', p.payload,
        'headers', coalesce(p.headers, '{}'), 'emitted_at', p.emitted_at)
    from milepost.next_parked(c ->> 'consumer', c ->> 'aggregate_type', c ->> 'aggregate_id') p
))::text as answer
from (select $1::text::json) a(c)
