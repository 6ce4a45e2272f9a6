-- Jobs that hold a group without having a slot of it.
select count(*) over () as count, l.id::text as what, l.state::text || ' in group ' || l.group_key as detail
from milepost.live l
where l.group_key is not null and l.state in ('pending', 'running', 'retry_wait')
  and not exists (select from milepost.group_slot s where s.group_key = l.group_key and s.job_id = l.id)
order by what
limit 10
