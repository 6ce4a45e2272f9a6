-- Groups with a free slot and a job that is long overdue; groups with a rate only if the pacer is overdue to check them. $1
-- the check's parameters
select count(*) over () as count, w.group_key as what, w.jobs || ' jobs wait' as detail
from (
    select group_key, count(*) as jobs from milepost.live
    where state = 'blocked' and group_key is not null and due_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
    group by group_key
) w
left join lateral milepost.limit_of(w.group_key) m on true
where ((m.name is not null and m.slots is null)
       or (select count(*) from milepost.group_slot s where s.group_key = w.group_key) < coalesce(m.slots, 1))
  and (m.per_second is null or exists (
      select from milepost.group_bucket b where b.group_key = w.group_key and b.look_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
  ))
order by what
limit 10
