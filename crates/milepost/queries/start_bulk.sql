-- Starts a run of a bulk job. $1: an object, as JSON text: name, parameters, key, run_at, priority, traceparent.
select json_build_object('job', made.job_id, 'duplicate', made.duplicate,
                         'outcome', case when made.duplicate then 'kept' else 'created' end)::text as answer
from (select $1::text::json) a(c)
cross join lateral milepost.start_bulk(
    c ->> 'name', (c -> 'parameters')::text::jsonb, c ->> 'key', (c ->> 'run_at')::timestamptz, (c ->> 'priority')::int, c ->> 'traceparent'
) made
