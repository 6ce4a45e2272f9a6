-- Batches with something to be worked out that nobody has touched for long. $1 the look
select count(*) over () as count, a.id::text as what,
       case when a.due > 0 and a.stop is null then a.due || ' tasks are due' else 'ends wait to be counted' end as detail
from milepost.batch a
where a.updated_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
  and (a.due > 0 and a.stop is null or exists (select from milepost.batch_spread s where s.batch_id = a.id))
order by what
limit 10
