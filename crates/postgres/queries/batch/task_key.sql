-- The key of task $2 of batch $1.
select coalesce(k.key, t.task::text)
from milepost.batch b
join milepost.batch_task t on t.batch_id = b.id and t.task = $2
left join milepost.dag_task k on b.items_of is null and k.version_id = b.version_id and k.task = t.task
where b.id = $1
