-- A page of jobs that ended without success, newest first: $1 canceled or skipped, $2 kind, $3 queue, $4 older than this
-- job, $5 limit. Read from the index ended_aside, which contains only these jobs and is the only one with this order.
select e.id, j.kind, j.queue, e.state::text, j.priority, e.attempt, e.max_attempts, j.key, j.group_key,
       j.created_at, j.nominal_at, null::timestamptz as ready_at, e.started_at, e.ended_at, null::int as worker_id, e.token
from milepost.ended e
cross join lateral (select * from milepost.job where id = e.id limit 1) j
where e.state <> 'succeeded'
  and (e.state, e.id) < ($1::text::milepost.job_state, $4::uuid) and e.state >= $1::text::milepost.job_state
  and ($2::text is null or j.kind = $2) and ($3::text is null or j.queue = $3)
order by e.state desc, e.id desc
limit $5
