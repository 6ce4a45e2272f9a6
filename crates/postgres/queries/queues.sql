-- Every queue that has live jobs, is served or was paused, with its workers, its live jobs by state, and since when the first of them that are due
-- has been due.
with counted as (
    select queue, state, count(*) as jobs, min(ready_at) filter (where ready_at <= now()) as oldest_due_at
    from milepost.live
    group by queue, state
),
served as (
    select s.queue, count(*) as workers
    from milepost.worker w, unnest(w.queues) s(queue)
    where w.ended_at is null and w.lease_expires_at > clock_timestamp()
    group by s.queue
),
named as (
    select queue as name from counted
    union select name from milepost.queue
    union select queue from served
)
select n.name, q.paused_at, coalesce(s.workers, 0) as workers, c.state::text as state, coalesce(c.jobs, 0) as jobs,
       c.oldest_due_at
from named n
left join milepost.queue q on q.name = n.name
left join served s on s.queue = n.name
left join counted c on c.queue = n.name
order by n.name, c.state
