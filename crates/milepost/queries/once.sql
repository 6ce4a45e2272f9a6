-- Records that a consumer processes an event. $1: an object, as JSON text: consumer, event_id.
select json_build_object('first', milepost.once(c ->> 'consumer', (c ->> 'event_id')::uuid))::text as answer
from (select $1::text::json) a(c)
