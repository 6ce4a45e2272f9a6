-- The predecessors that the tasks $1, $2 of definitions (batches and tasks, parallel arrays without duplicates) read. A result is returned as JSON
-- text once, in the first row with its `source`; the others share it. It is missing if all results that a task reads have together more
-- than $3 bytes. A task that would raise the results of this statement above $4 bytes is `later`, and so are all after it, except the first.
with place as materialized (
    select i.ord, i.batch_id, i.task, a.version_id, p.id as parent_id, p.version_id as parent_version_id
    from unnest($1::uuid[], $2::int[]) with ordinality i(batch_id, task, ord)
    join milepost.batch a on a.id = i.batch_id
    left join milepost.batch p on p.id = a.parent_id and a.items_of is not null
),
named as materialized (
    select p.*, r.task as read
    from place p
    cross join lateral milepost.dag_task_of(p.version_id, p.task) d
    cross join lateral unnest(d.reads) r(task)
),
definition as materialized (
    select n.version_id, n.read, k.key, k.spec ? 'each' as over_a_list
    from (select distinct version_id, read from named) n
    cross join lateral milepost.dag_task_of(n.version_id, n.read) k
),
read as materialized (
    select n.ord, n.batch_id, n.task, n.read, k.key, k.over_a_list, o.state, o.child_id, o.job_id, w.output as awaited,
           case when o.state = 'succeeded' and not (o.child_id is null and k.over_a_list) then coalesce(o.child_id, o.job_id) end as source
    from named n
    join definition k on k.version_id = n.version_id and k.read = n.read
    -- The batch of a list keeps its version when its parent is moved to another one.
    cross join lateral milepost.batch_task_of(coalesce(n.parent_id, n.batch_id), case
        when n.parent_version_id <> n.version_id then (
            select t.task from milepost.dag_task t where t.version_id = n.parent_version_id and t.key = k.key
        )
        else n.read end) o
    -- The payload of the signal that ended its wait.
    left join milepost.batch_wait w on o.job_id is null and o.child_id is null and o.state = 'succeeded' and w.batch_id = o.batch_id and w.task = o.task
),
result as materialized (
    select s.source, case when s.child_id is null then octet_length(e.result::text)::bigint else milepost.batch_output_bytes(s.child_id) end as bytes
    from (select distinct source, child_id, job_id from read where source is not null) s
    left join milepost.ended e on e.id = s.job_id
),
sized as (
    select r.*, b.bytes, sum(b.bytes) over (partition by r.ord) > $3 as too_much
    from read r
    left join result z on z.source = r.source
    cross join lateral (select coalesce(z.bytes, octet_length(r.awaited::text), 0) as bytes) b
),
counted as (
    select s.*, row_number() over (partition by source, too_much order by ord, read) = 1 and not too_much as is_first from sized s
),
summed as (
    select c.*, sum(case when is_first or source is null then bytes else 0 end) over (order by ord) > $4 and ord > 1 as later from counted c
)
select batch_id, task, key, state::text as state, source, too_much, later,
       case when too_much or later or state <> 'succeeded' then null
            when source is null then case when over_a_list then '[]' else awaited::text end
            when not is_first then null
            when child_id is null then (select e.result from milepost.ended e where e.id = job_id)::text
            else milepost.batch_output(child_id)::text
       end as output
from summed
order by ord, read
