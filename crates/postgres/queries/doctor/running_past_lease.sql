-- Jobs that run under a worker that is long gone. $1 the look
select count(*) over () as count, l.id::text as what, 'under worker ' || w.id::text || case when w.ended_at is null then ', whose lease ran out' else ', which has ended' end as detail
from milepost.live l
join milepost.worker w on w.id = l.worker_id
where l.state = 'running'
  and coalesce(w.ended_at, w.lease_expires_at) < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
order by what
limit 10
