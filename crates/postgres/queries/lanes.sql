-- The (queue, kind) pairs that active workers serve and that are not paused, the number of active workers, and whether
-- groups have rates.
with living as materialized (
    select queues, kinds from milepost.worker where ended_at is null and lease_expires_at > now()
)
select distinct q.queue, k.kind, (select count(*) from living) as workers,
       exists (select from milepost.group_limit where per_second is not null) as paced
from living w
cross join lateral unnest(w.queues) q(queue)
cross join lateral unnest(w.kinds) k(kind)
where not exists (select from milepost.queue p where p.name = q.queue and p.paused_at is not null)
