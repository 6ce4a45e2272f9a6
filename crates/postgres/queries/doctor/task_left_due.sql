-- Batches with pending work that have not changed for long. $1 the check's parameters
select count(*) over () as count, a.id::text as what,
       case when a.due > 0 and a.stop is null then a.due || ' tasks are due' else 'ends of tasks are waiting to be counted' end as detail
from milepost.batch a
where a.updated_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
  and (a.due > 0 and a.stop is null or exists (select from milepost.batch_spread s where s.batch_id = a.id))
order by what
limit 10
