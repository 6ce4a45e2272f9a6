-- A page of jobs in any state ($1 null), or of pending or succeeded ones, newest first: $2 kind, $3 queue, $4 older than
-- this job, $5 limit. Rare states have separate statements.
with page as (
    (select l.id, l.state, l.attempt, l.max_attempts, l.token, l.ready_at, l.started_at,
            null::timestamptz as ended_at, l.worker_id
     from milepost.live l
     where ($1::text is null or $1 = 'pending') and ($1 is null or l.state = 'pending')
       and ($2::text is null or l.kind = $2) and ($3::text is null or l.queue = $3) and l.id < $4
     order by l.id desc
     limit $5)
    union all
    (select e.id, e.state, e.attempt, e.max_attempts, e.token, null, e.started_at, e.ended_at, null
     from milepost.ended e
     cross join lateral (select kind, queue from milepost.job where id = e.id limit 1) asked
     where ($1::text is null or $1 = 'succeeded') and ($1 is null or e.state = 'succeeded')
       and ($2::text is null or asked.kind = $2) and ($3::text is null or asked.queue = $3) and e.id < $4
     order by e.id desc
     limit $5)
)
select p.id, j.kind, j.queue, p.state::text, j.priority, p.attempt, p.max_attempts, j.key, j.group_key,
       j.created_at, j.nominal_at, p.ready_at, p.started_at, p.ended_at, p.worker_id, p.token
from page p
cross join lateral (select * from milepost.job where id = p.id limit 1) j
order by p.id desc
limit $5
