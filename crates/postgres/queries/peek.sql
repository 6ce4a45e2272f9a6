-- For each lane, when its next job is ready, in how many ms (0 or less: now; null: there is none), and in how many ms it can
-- be claimed, which differs for a kind whose rate is exhausted; $1..$4 lanes as in claim. Each row also contains the time
-- until a job that waits in its group for its start time is due, the current time, and the duration so far in us. Times beyond those that
-- Milepost stores, which only another program can write, are shown as the nearest that can be read.
select lane.ord, l.ready_at, (extract(epoch from l.ready_at - now()) * 1000)::bigint as due_in_ms,
       case when l.ready_at is not null then greatest(
           (extract(epoch from l.ready_at - now()) * 1000)::bigint,
           ceil(extract(epoch from milepost.opens_at(k.full_at, k.per_second, k.burst, k.portion) - now()) * 1000)::bigint
       ) end as open_in_ms,
       (select ceil(extract(epoch from least(greatest(w.due_at, '0001-01-01'), '9999-12-30') - now()) * 1000)::bigint from milepost.live w
        where w.timed order by w.due_at limit 1) as timed_in_ms,
       now() as at,
       (extract(epoch from clock_timestamp() - statement_timestamp()) * 1000000)::bigint as took_us
from unnest($1::text[], $2::text[], $3::smallint[], $4::timestamptz[]) with ordinality
    as lane(queue, kind, priority, floor, ord)
left join lateral (
    select least(greatest(j.ready_at, '0001-01-01'), '9999-12-30') as ready_at from milepost.live j
    where j.queue = lane.queue and j.kind = lane.kind and j.priority = lane.priority
      and j.ready_at is not null and j.ready_at >= coalesce(lane.floor, '-infinity')
    order by j.ready_at, j.id
    limit 1
) l on true
left join milepost.kind_limit k on k.kind = lane.kind
