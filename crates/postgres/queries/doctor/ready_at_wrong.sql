-- Jobs that wait without a start time, and jobs that have one and do not wait.
select count(*) over () as count, l.id::text as what, l.state::text || case when l.ready_at is null then ' without ready_at' else ' with ready_at' end as detail
from milepost.live l
where (l.state in ('pending', 'retry_wait')) <> (l.ready_at is not null)
order by what
limit 10
