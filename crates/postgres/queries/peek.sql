-- How soon each lane has something to claim, in ms from now (0 or less: now); lanes as in claim, $1..$4.
-- Lanes with nothing are left out.
select lane.ord, (extract(epoch from l.ready_at - now()) * 1000)::bigint as due_in_ms
from unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[]) with ordinality
    as lane(queue, kind, priority, age_ms, ord)
cross join lateral (
    select ready_at from milepost.live
    where queue = lane.queue and kind = lane.kind and priority = lane.priority
      and ready_at is not null and ready_at >= coalesce(now() - lane.age_ms * interval '1 millisecond', '-infinity')
    order by ready_at, id
    limit 1
) l
