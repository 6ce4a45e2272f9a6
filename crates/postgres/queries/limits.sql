-- Every limit, with what it has left and who waits.
select 'kind' as target, k.kind as name, null::int as slots, k.per_second, k.burst, k.source,
       milepost.tokens(k.full_at, k.per_second, k.burst) as tokens,
       (select count(*) from milepost.live l where l.kind = k.kind and l.state = 'running') as holders,
       (select count(*) from milepost.live l where l.kind = k.kind and l.ready_at <= now()) as waiting
from milepost.kind_limit k
union all
select 'group', g.name, g.slots, g.per_second, g.burst, g.source,
       case when g.per_second is not null and g.name not like '%:*' then
           coalesce((select milepost.tokens(b.full_at, g.per_second, g.burst)
                     from milepost.group_bucket b where b.group_key = g.name), g.burst) end,
       (select count(*) from milepost.group_slot s cross join lateral milepost.limit_of(s.group_key) l where l.name = g.name),
       (select count(*) from milepost.live w cross join lateral milepost.limit_of(w.group_key) l
        where w.group_key is not null and w.due_at is not null and w.timed is null and l.name = g.name)
from milepost.group_limit g
order by 1 desc, 2
