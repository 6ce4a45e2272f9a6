-- The state changes of batch $1 after position $2, oldest first, at most $3.
select h.pos, h.at, h.generation, h.task, coalesce(k.key, h.key, h.task::text) as key, h.job_id, h.verb::text as verb,
       h.from_state, h.to_state, h.note
from milepost.batch_history h
join milepost.batch b on b.id = h.batch_id
left join milepost.dag_task k on b.items_of is null and k.version_id = b.version_id and k.task = h.task
where h.batch_id = $1 and h.pos > $2
order by h.pos
limit $3
