-- Every queue that has live jobs, is served or was touched, with its live jobs by state.
with counted as (
    select queue, state, count(*) as jobs from milepost.live group by queue, state
),
named as (
    select queue as name from counted
    union select name from milepost.queue
    union select unnest(queues) from milepost.worker where ended_at is null
)
select n.name, q.paused_at, c.state::text as state, coalesce(c.jobs, 0) as jobs
from named n
left join milepost.queue q on q.name = n.name
left join counted c on c.queue = n.name
order by n.name, c.state
