-- Every queue that has live jobs, is served or was paused, with its live jobs by kind and state, and the number of those
-- that are due. Only for the $1 kinds with the most jobs; the others are summed up without a kind.
with counted as materialized (
    select queue, kind, state, count(*) as jobs, count(*) filter (where ready_at <= now()) as due
    from milepost.live
    group by queue, kind, state
),
common as materialized (
    select kind from counted group by kind order by sum(jobs) desc, kind limit $1
),
told as (
    select t.queue, c.kind, t.state, sum(t.jobs)::bigint as jobs, sum(t.due)::bigint as due
    from counted t
    left join common c on c.kind = t.kind
    group by t.queue, c.kind, t.state
),
named as (
    select queue as name from counted
    union select name from milepost.queue
    union select unnest(queues) from milepost.worker where ended_at is null
)
select n.name, q.paused_at, t.kind, t.state::text as state, t.jobs, t.due
from named n
left join milepost.queue q on q.name = n.name
left join told t on t.queue = n.name
order by n.name, t.kind, t.state
