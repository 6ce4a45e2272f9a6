-- Gives free slots of groups to jobs that hold the group without one. $1 at most
insert into milepost.group_slot (group_key, slot, job_id)
select l.group_key, 1, l.id from milepost.live l
where l.group_key is not null and l.state in ('pending', 'running', 'retry_wait')
  and not exists (select from milepost.group_slot s where s.group_key = l.group_key)
order by l.group_key, l.id
limit $1
on conflict do nothing
returning job_id::text
