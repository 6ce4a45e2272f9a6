-- Every limit, with its remaining capacity and the numbers of holders and waiting jobs. Jobs are counted once for all
-- limits, not once for each.
with of_kinds as (
    select l.kind, count(*) filter (where l.state = 'running') as holders, count(*) filter (where l.ready_at <= now()) as waiting
    from milepost.live l
    where l.kind in (select k.kind from milepost.kind_limit k) and (l.state = 'running' or l.ready_at <= now())
    group by l.kind
), holders as (
    select l.name, sum(s.jobs)::bigint as jobs
    from (select group_key, count(*) as jobs from milepost.group_slot group by group_key) s
    cross join lateral milepost.limit_of(s.group_key) l
    group by l.name
), waiting as (
    select l.name, sum(w.jobs)::bigint as jobs
    from (select group_key, count(*) as jobs from milepost.live
          where group_key is not null and due_at is not null and timed is null group by group_key) w
    cross join lateral milepost.limit_of(w.group_key) l
    group by l.name
)
select 'kind' as target, k.kind as name, null::int as slots, k.per_second, k.burst, k.source,
       milepost.tokens(k.full_at, k.per_second, k.burst) as tokens,
       coalesce(j.holders, 0) as holders, coalesce(j.waiting, 0) as waiting
from milepost.kind_limit k left join of_kinds j on j.kind = k.kind
union all
select 'group', g.name, g.slots, g.per_second, g.burst, g.source,
       case when g.per_second is not null and g.name not like '%:*' then
           coalesce((select milepost.tokens(milepost.full_without_reserved(b, g.per_second), g.per_second, g.burst)
                     from milepost.group_bucket b where b.group_key = g.name), g.burst) end,
       coalesce(h.jobs, 0), coalesce(w.jobs, 0)
from milepost.group_limit g left join holders h on h.name = g.name left join waiting w on w.name = g.name
order by 1 desc, 2
