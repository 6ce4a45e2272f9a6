-- Running jobs without a worker.
select count(*) over () as count, l.id::text as what, coalesce('its worker ' || l.worker_id::text || ' does not exist', 'no worker') as detail
from milepost.live l
where l.state = 'running'
  and (l.worker_id is null or not exists (select from milepost.worker w where w.id = l.worker_id))
order by what
limit 10
