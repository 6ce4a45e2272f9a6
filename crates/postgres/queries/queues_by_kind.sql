-- Every queue that has live jobs, is served or was paused, with its live jobs by kind and state, and the number of those
-- that are due and since when the first one has been. Only for the $1 kinds with the most jobs; the others are summed up without a kind.
with counted as materialized (
    select queue, kind, state, count(*) as jobs, count(*) filter (where ready_at <= now()) as due,
           min(ready_at) filter (where ready_at <= now()) as oldest_due_at
    from milepost.live
    group by queue, kind, state
),
common as materialized (
    select kind from counted group by kind order by sum(jobs) desc, kind limit $1
),
told as (
    select t.queue, c.kind, t.state, sum(t.jobs)::bigint as jobs, sum(t.due)::bigint as due,
           min(t.oldest_due_at) as oldest_due_at
    from counted t
    left join common c on c.kind = t.kind
    group by t.queue, c.kind, t.state
),
named as (
    select queue as name from counted
    union select name from milepost.queue
    union select unnest(queues) from milepost.worker where ended_at is null
)
select n.name, q.paused_at, t.kind, t.state::text as state, t.jobs, t.due, t.oldest_due_at
from named n
left join milepost.queue q on q.name = n.name
left join told t on t.queue = n.name
order by n.name, t.kind, t.state
