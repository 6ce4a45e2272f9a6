-- Active workers, and the last 1,000 workers that ended within a day.
select w.id, w.name, w.queues, w.kinds, w.started_at, w.heartbeat_at, w.ended_at is null and w.lease_expires_at <= now() as lease_expired,
       w.ended_at, w.died, w.slots,
       (select count(*) from milepost.live l where l.worker_id = w.id) as running
from milepost.worker w
where w.ended_at is null
   or w.id in (select k.id from milepost.worker k where k.ended_at > now() - interval '1 day' order by k.ended_at desc limit 1000)
order by w.id
