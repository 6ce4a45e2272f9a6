-- A page of live jobs that neither wait for a worker nor run, newest first: $1 blocked, retry_wait, failed or aborted, $2
-- kind, $3 queue, $4 older than this job, $5 limit. Read from the index live_aside, which contains only these jobs and is
-- the only one with this order; without it, a plan made while the table was empty would walk the primary key.
select l.id, j.kind, j.queue, l.state::text, j.priority, l.attempt, l.max_attempts, j.key, j.group_key,
       j.created_at, j.nominal_at, l.ready_at, l.started_at, null::timestamptz as ended_at, l.worker_id, l.token
from milepost.live l
cross join lateral (select * from milepost.job where id = l.id limit 1) j
where l.state <> 'pending' and l.state <> 'running'
  and (l.state, l.id) < ($1::text::milepost.job_state, $4::uuid) and l.state >= $1::text::milepost.job_state
  and ($2::text is null or l.kind = $2) and ($3::text is null or l.queue = $3)
order by l.state desc, l.id desc
limit $5
