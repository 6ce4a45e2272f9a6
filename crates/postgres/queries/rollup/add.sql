-- Adds counts of periods of $1 seconds.
insert into milepost.rollup as r (step_s, starts_at, queue, kind, verb, bucket, times)
select $1::int, to_timestamp(c.at_s), c.queue, c.kind, c.verb::milepost.verb, c.bucket, c.times
from unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[]) c(at_s, queue, kind, verb, bucket, times)
on conflict (step_s, starts_at, queue, kind, verb, bucket) do update set times = r.times + excluded.times
