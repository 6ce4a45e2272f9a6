-- The predecessors that the due tasks $1, $2 (batches and tasks, parallel arrays) read: each once, with its result as JSON
-- text unless all results that its task reads have together more than $3 bytes.
with read as materialized (
    select i.batch_id, i.task, r.task as read, k.key, o.state, o.job_id, o.child_id, k.spec ? 'each' as over_a_list,
           case when o.child_id is null then octet_length(e.result::text)::bigint else milepost.batch_output_bytes(o.child_id) end as bytes
    from unnest($1::uuid[], $2::int[]) i(batch_id, task)
    join milepost.batch a on a.id = i.batch_id
    cross join lateral milepost.dag_task_of(a.version_id, coalesce(a.items_of, i.task)) d
    cross join lateral unnest(d.reads) r(task)
    cross join lateral milepost.dag_task_of(a.version_id, r.task) k
    left join milepost.batch p on p.id = a.parent_id and a.items_of is not null
    -- The batch of a list keeps its version when its parent is moved to another one.
    cross join lateral milepost.batch_task_of(coalesce(p.id, a.id), case
        when p.version_id <> a.version_id then (select n.task from milepost.dag_task n where n.version_id = p.version_id and n.key = k.key)
        else r.task end) o
    left join milepost.ended e on e.id = o.job_id
),
summed as (
    select r.*, sum(coalesce(bytes, 0)) over (partition by batch_id, task) as total from read r
)
select batch_id, task, key, state::text as state, total > $3 as too_much,
       case when total <= $3 then
           case when state <> 'succeeded' then null
                when child_id is null and over_a_list then '[]'
                when child_id is null then (select e.result from milepost.ended e where e.id = job_id) else milepost.batch_output(child_id) end::text
       end as output
from summed
order by batch_id, task, read
