-- Assigns free slots of groups to jobs that hold the group without a slot. $1 limit
with bare as materialized (
    select l.id, l.group_key from milepost.live l
    where l.group_key is not null and l.state in ('pending', 'running', 'retry_wait')
      and not exists (select from milepost.group_slot s where s.group_key = l.group_key and s.job_id = l.id)
    order by l.group_key, l.id limit $1
)
select id::text from bare where milepost.take_slot(group_key, id)
