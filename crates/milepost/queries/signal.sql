-- Sends a signal to a batch. $1: an object, as JSON text: batch, name, payload, id.
select json_build_object('result', milepost.signal((c ->> 'batch')::uuid, c ->> 'name', (c -> 'payload')::text::jsonb, c ->> 'id'))::text as answer
from (select $1::text::json) a(c)
