-- Cancels a job. $1: an object, as JSON text: job, reason, grace_ms.
select json_build_object('state', milepost.cancel((c ->> 'job')::uuid, c ->> 'reason', (c ->> 'grace_ms')::bigint))::text as answer
from (select $1::text::json) a(c)
