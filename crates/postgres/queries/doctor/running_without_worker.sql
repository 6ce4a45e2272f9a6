-- Jobs that run under no worker.
select count(*) over () as count, l.id::text as what, coalesce('its worker ' || l.worker_id::text || ' is not known', 'no worker') as detail
from milepost.live l
where l.state = 'running'
  and (l.worker_id is null or not exists (select from milepost.worker w where w.id = l.worker_id))
order by what
limit 10
