-- Groups that are held by more jobs than they have slots.
select count(*) over () as count, w.group_key as what, w.jobs || ' jobs have a slot, the limit is ' || coalesce(m.slots, 1) as detail
from (
    select group_key, count(*) as jobs from milepost.live
    where group_key is not null and state in ('pending', 'running', 'retry_wait')
    group by group_key having count(*) > 1
) w
left join lateral milepost.limit_of(w.group_key) m on true
where w.jobs > coalesce(m.slots, 1) and (m.name is null or m.slots is not null)
order by what
limit 10
