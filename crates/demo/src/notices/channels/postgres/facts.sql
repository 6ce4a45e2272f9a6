-- The results of run $1, whose parameters are $2: its targets, its notices, targets without a notice, channels with several.
with params as (
    select p->>'world' as world, p->>'x' as x, p->>'y' as y, p->>'z' as z, p->>'nearness' as nearness
    from (select $2::text::jsonb) as j(p)
),
target as materialized (
    select c.id from milepost_demo_channel c, params p
    where c.world = p.world::bigint
      and (p.x is null
           or c.x * p.x::float8 + c.y * p.y::float8 + c.z * p.z::float8 >= p.nearness::float8)
),
notice as materialized (
    select channel, count(*) as times from milepost_demo_notice where run = $1 group by channel
)
-- A full join cannot be planned as a nested loop, which would read one side again for each row of the other if few rows are expected.
select count(t.id),
       coalesce(sum(n.times), 0)::bigint,
       count(*) filter (where n.channel is null),
       count(*) filter (where n.times > 1)
from target t
full join notice n on n.channel = t.id
