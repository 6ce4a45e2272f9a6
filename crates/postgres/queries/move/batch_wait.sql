-- Imports waits of tasks. $8 JSON texts
insert into milepost.batch_wait (batch_id, task, signal, since, until, on_timeout, check_at, output)
select batch_id, task, signal, since, until, on_timeout::milepost.task_state, check_at, output::jsonb
from unnest($1::uuid[], $2::int[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::timestamptz[], $8::text[])
    as r(batch_id, task, signal, since, until, on_timeout, check_at, output)
