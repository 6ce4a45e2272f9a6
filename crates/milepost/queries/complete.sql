-- Ends a run. $1: an object, as JSON text: job, run_token, result.
select json_build_object('held', milepost.complete((c ->> 'job')::uuid, (c ->> 'run_token')::int, (c ->> 'result')::jsonb))::text as answer
from (select $1::text::json) a(c)
