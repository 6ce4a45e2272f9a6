-- Batches, newest first: $1 DAG, $2 state, $3 key, $4 whether to include child batches, $5 older than this one, $6 limit, $7
-- only this one.
select b.id, b.dag, v.number, v.version, b.key, b.state::text as state, b.stop is not null as stopped, b.generation, b.waiting, b.due, b.active,
       b.failed, b.aborted, b.succeeded, b.skipped, b.canceled, b.parent_id, b.parent_task, k.key as parent_key,
       b.items_of is not null as items, b.nominal_at, b.nominal_zone, b.created_at, b.updated_at, b.ended_at,
       case when $7::uuid is not null then (select i.input::text from milepost.batch_input i where i.batch_id = b.id) end as input
from milepost.batch b
join milepost.dag_version v on v.id = b.version_id
left join milepost.batch p on p.id = b.parent_id
left join milepost.dag_task k on k.version_id = p.version_id and k.task = coalesce(p.items_of, b.parent_task)
where ($1::text is null or b.dag = $1)
  and ($2::text is null or b.state = $2::milepost.batch_state)
  and ($3::text is null or b.key = $3)
  and ($4 or b.parent_id is null)
  and ($5::uuid is null or b.id < $5)
  and ($7::uuid is null or b.id = $7)
order by b.id desc
limit $6
