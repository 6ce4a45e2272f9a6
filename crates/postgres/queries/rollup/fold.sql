-- Makes periods of $1 seconds that are older than $3 seconds a part of periods of $2 seconds.
with old as (
    delete from milepost.rollup
    where step_s = $1::int and starts_at < date_bin(make_interval(secs => $2::int), now() - make_interval(secs => $3::int), 'epoch')
    returning *
)
insert into milepost.rollup as r (step_s, starts_at, queue, kind, verb, bucket, times)
select $2::int, date_bin(make_interval(secs => $2::int), o.starts_at, 'epoch') as period, o.queue, o.kind, o.verb, o.bucket, sum(o.times)::bigint
from old o
group by period, o.queue, o.kind, o.verb, o.bucket
on conflict (step_s, starts_at, queue, kind, verb, bucket) do update set times = r.times + excluded.times
