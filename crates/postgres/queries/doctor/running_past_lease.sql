-- Running jobs of workers that ended or lost their lease long ago. $1 the check's parameters
select count(*) over () as count, l.id::text as what, 'its worker is ' || w.id::text || case when w.ended_at is null then ', whose lease expired' else ', which has stopped' end as detail
from milepost.live l
join milepost.worker w on w.id = l.worker_id
where l.state = 'running'
  and coalesce(w.ended_at, w.lease_expires_at) < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
order by what
limit 10
