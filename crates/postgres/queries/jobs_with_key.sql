-- A page of the jobs that have key $6, one for each kind, newest first: $1 state, $2 kind, $3 queue, $4 older than this job,
-- $5 limit. One probe of job_key for each kind that has keys.
with recursive kinds as (
    (select kind from milepost.job_key order by kind limit 1)
    union all
    select (select k.kind from milepost.job_key k where k.kind > kinds.kind order by k.kind limit 1)
    from kinds where kinds.kind is not null
),
holders as materialized (
    select k.job_id from kinds
    cross join lateral (
        select job_id from milepost.job_key where kind = kinds.kind and key = $6 limit 1
    ) k
    where kinds.kind is not null and ($2::text is null or kinds.kind = $2)
)
select j.id, j.kind, j.queue, s.state::text, j.priority, s.attempt, s.max_attempts, j.key, j.group_key,
       j.created_at, j.nominal_at, s.ready_at, s.started_at, s.ended_at, s.worker_id, s.token
from holders h
cross join lateral (select * from milepost.job where id = h.job_id limit 1) j
cross join lateral (
    select state, attempt, max_attempts, token, ready_at, started_at, null::timestamptz as ended_at, worker_id
    from milepost.live where id = j.id
    union all
    select state, attempt, max_attempts, token, null, started_at, ended_at, null
    from milepost.ended where id = j.id
) s
where ($1::text is null or s.state = $1::text::milepost.job_state) and ($3::text is null or j.queue = $3) and j.id < $4
order by j.id desc
limit $5
