-- Creates jobs $1 to $2 (exclusive) of a store that has run $3 jobs per day for $4 days, with payloads of $5 bytes: of each hundred jobs,
-- one was canceled and one is a dead letter. Each has a key and a complete history.
with made as materialized (
    select n, at,
           (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
               || '8' || substr(md5(n::text), 4, 15))::uuid as id,
           case n % 100 when 0 then 'canceled' when 1 then 'failed' else 'succeeded' end::milepost.job_state as state
    from generate_series($1::bigint, $2::bigint - 1) n
    cross join lateral (
        select now() - ($4::float8 - n / $3::float8) * interval '1 day' as at
    ) time
),
jobs as (
    insert into milepost.job (id, kind, queue, payload, key, priority, max_attempts, created_at)
    select id, 'noop', 'milepost-bench', jsonb_build_object('n', n, 'pad', repeat('x', greatest($5::int - 20, 0))),
           'aged-' || n, 2, 25, at
    from made
),
keys as (
    insert into milepost.job_key (kind, key, job_id) select 'noop', 'aged-' || n, id from made
),
ends as (
    insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state)
    select id, at, at, case state when 'canceled' then 0 else 1 end, case state when 'canceled' then 0 else 1 end, 25,
           state
    from made where state <> 'failed'
),
letters as (
    insert into milepost.live (id, failed_at, token, attempt, max_attempts, state, priority, kind, queue)
    select id, at, 1, 1, 25, state, 2, 'noop', 'milepost-bench' from made where state = 'failed'
)
insert into milepost.history (job_id, at, token, attempt, verb, from_state, to_state)
select made.id, made.at, step.token, step.token, step.verb::milepost.verb, step.from_state::milepost.job_state,
       step.to_state::milepost.job_state
from made
join (values ('succeeded', 1, 0, 'create', null, 'pending'), ('succeeded', 2, 1, 'claim', 'pending', 'running'),
             ('succeeded', 3, 1, 'succeed', 'running', 'succeeded'),
             ('failed', 1, 0, 'create', null, 'pending'), ('failed', 2, 1, 'claim', 'pending', 'running'),
             ('failed', 3, 1, 'fail', 'running', 'failed'),
             ('canceled', 1, 0, 'create', null, 'pending'), ('canceled', 2, 0, 'cancel', 'pending', 'canceled')
     ) step(state, place, token, verb, from_state, to_state) on step.state = made.state::text
order by made.n, step.place
