-- Creates jobs $1 to $2 (exclusive) of $3, created over the 20 days before $4 (ms since 1970), with a complete history. The newest fifth is
-- waiting; of the others one in a hundred failed permanently and the rest succeeded, run by worker $5. Every tenth has a key.
with numbered as (
    select n, $4::bigint - 1728000000 + (1728000000 - 60000) * n / $3::bigint as ms
    from generate_series($1::bigint, $2::bigint - 1) n
),
made as materialized (
    -- An id is a UUIDv7 whose random part is the job's number, so that later jobs have higher ids.
    select n, to_timestamp(ms / 1000.0) as at,
           (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex((n >> 20) & 4095), 3, '0')
               || '8' || lpad(to_hex(n & 1048575), 5, '0') || lpad(to_hex(n % 1048573), 10, '0'))::uuid as id,
           (array['mail', 'invoice', 'report', 'sync', 'thumbnail', 'export', 'score', 'notify'])[n % 8 + 1] as kind,
           (array['default', 'night', 'bulk'])[n % 3 + 1] as queue,
           case when n % 10 = 0 then 'order-' || n end as key,
           case when n >= $3::bigint - $3::bigint / 5 then 'pending' when n % 101 = 0 then 'failed' else 'succeeded' end as state
    from numbered
),
jobs as (
    insert into milepost.job (id, kind, queue, payload, key, priority, max_attempts, created_at)
    select id, kind, queue, jsonb_build_object('order', n, 'customer', 'c' || n % 9973, 'amount', n % 500 + 0.5), key, 2, 5, at
    from made
    order by n
),
keys as (
    insert into milepost.job_key (kind, key, job_id) select kind, key, id from made where key is not null
),
ends as (
    insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state)
    select id, at + interval '900 ms', at + interval '400 ms', 1, 1, 5, 'succeeded'
    from made
    where state = 'succeeded'
    order by n
),
stands as (
    insert into milepost.live (id, ready_at, started_at, failed_at, token, attempt, max_attempts, state, priority, kind, queue)
    select id, case when state = 'pending' then at end, case when state = 'failed' then at + interval '400 ms' end,
           case when state = 'failed' then at + interval '900 ms' end, (state = 'failed')::int, (state = 'failed')::int, 5,
           state::milepost.job_state, 2, kind, queue
    from made
    where state <> 'succeeded'
    order by n
)
insert into milepost.history (job_id, at, token, attempt, worker_id, verb, from_state, to_state, error_code, error_message)
select made.id, made.at + step.after_ms * interval '1 ms', step.token, step.token, case when step.token = 1 then $5::int end,
       step.verb::milepost.verb, step.from_state::milepost.job_state, step.to_state::milepost.job_state,
       case when step.verb = 'fail' then (array['timeout', 'http_503', 'bad_row'])[made.n % 3 + 1] end,
       case when step.verb = 'fail' then 'upstream said 503 for order ' || made.n end
from made
join (values ('pending', 1, 0, 0, 'create', null, 'pending'),
             ('succeeded', 1, 0, 0, 'create', null, 'pending'), ('succeeded', 2, 400, 1, 'claim', 'pending', 'running'),
             ('succeeded', 3, 900, 1, 'succeed', 'running', 'succeeded'),
             ('failed', 1, 0, 0, 'create', null, 'pending'), ('failed', 2, 400, 1, 'claim', 'pending', 'running'),
             ('failed', 3, 900, 1, 'fail', 'running', 'failed')
     ) step(state, place, after_ms, token, verb, from_state, to_state) on step.state = made.state
order by made.n, step.place
