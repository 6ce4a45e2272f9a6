-- Starts a batch. $1: an object, as JSON text: dag, key, input, version, id, nominal_at, traceparent, nominal_zone.
select json_build_object('batch', made.batch_id, 'duplicate', made.duplicate)::text as answer
from (select $1::text::json) a(c)
cross join lateral milepost.start_batch(
    c ->> 'dag', c ->> 'key', (c -> 'input')::text::jsonb, c ->> 'version', false, (c ->> 'id')::uuid, (c ->> 'nominal_at')::timestamptz,
    c ->> 'traceparent', c ->> 'nominal_zone'
) made
