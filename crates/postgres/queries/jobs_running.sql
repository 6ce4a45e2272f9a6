-- A page of running jobs, newest first: $1 running, $2 kind, $3 queue, $4 older than this job, $5 limit. Read from the index
-- live_worker, which contains the running jobs and is the only one with this order.
with held as materialized (
    select id, state, attempt, max_attempts, token, started_at, worker_id, kind, queue
    from milepost.live
    where worker_id is not null
    order by worker_id
),
page as materialized (
    select h.* from held h
    where h.state = $1::text::milepost.job_state
      and ($2::text is null or h.kind = $2) and ($3::text is null or h.queue = $3) and h.id < $4
    order by h.id desc
    limit $5
)
select p.id, j.kind, j.queue, p.state::text, j.priority, p.attempt, p.max_attempts, j.key, j.group_key,
       j.created_at, j.nominal_at, null::timestamptz as ready_at, p.started_at,
       null::timestamptz as ended_at, p.worker_id, p.token
from page p
cross join lateral (select * from milepost.job where id = p.id limit 1) j
order by p.id desc
