-- Active workers, and workers that ended within the last day.
select w.id, w.name, w.queues, w.kinds, w.started_at, w.heartbeat_at, w.ended_at, w.died,
       (select count(*) from milepost.live l where l.worker_id = w.id) as running
from milepost.worker w
where w.ended_at is null or w.ended_at > now() - interval '1 day'
order by w.id
