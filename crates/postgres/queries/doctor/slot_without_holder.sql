-- Slots of groups whose job does not hold them.
select count(*) over () as count, s.group_key as what, 'its job is ' || coalesce(l.state::text, 'not live') as detail
from milepost.group_slot s
left join milepost.live l on l.id = s.job_id
where l.id is null or l.group_key is distinct from s.group_key
   or l.state not in ('pending', 'running', 'retry_wait')
order by what
limit 10
