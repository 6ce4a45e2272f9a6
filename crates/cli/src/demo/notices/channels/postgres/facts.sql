-- What became of run $1, whose parameters are $2: its targets, its notices, targets without one, channels with several.
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
select (select count(*) from target),
       (select coalesce(sum(times), 0)::bigint from notice),
       (select count(*) from target t where not exists (select from notice n where n.channel = t.id)),
       (select count(*) from notice where times > 1)
