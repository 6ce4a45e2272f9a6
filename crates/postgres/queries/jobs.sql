-- A page of jobs, newest first: $1 state, $2 kind, $3 queue, $4 key, $5 older than this job, $6 how many.
with page as (
    select id, state, attempt, max_attempts, token, ready_at, started_at, null::timestamptz as ended_at, worker_id
    from milepost.live
    where ($1::text is null or state = $1::text::milepost.job_state)
    union all
    select id, state, attempt, max_attempts, token, null, started_at, ended_at, null
    from milepost.ended
    where ($1::text is null or state = $1::text::milepost.job_state)
)
select p.id, j.kind, j.queue, p.state::text, j.priority, p.attempt, p.max_attempts, j.key, j.group_key,
       j.created_at, j.nominal_at, p.ready_at, p.started_at, p.ended_at, p.worker_id, p.token
from page p
join milepost.job j on j.id = p.id
where ($2::text is null or j.kind = $2) and ($3::text is null or j.queue = $3)
  and ($4::text is null or j.key = $4) and ($5::uuid is null or p.id < $5)
order by p.id desc
limit $6
