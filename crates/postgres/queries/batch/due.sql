-- Locks due tasks of batches that are not stopped: of $1 (null: of all), at most $2. Answers what they do.
select a.id as batch_id, t.task, d.spec::text as spec, case when a.items_of is null then a.input else p.input end::text as input,
       case when a.items_of is not null then (a.input -> t.task)::text end as item, cardinality(d.reads) > 0 as reads
from milepost.batch a
left join milepost.batch p on a.items_of is not null and p.id = a.parent_id
cross join lateral (
    select task from milepost.batch_task
    where batch_id = a.id and state = 'due'
    order by task limit $2
    for update skip locked
) t
cross join lateral milepost.dag_task_of(a.version_id, coalesce(a.items_of, t.task)) d
where a.due > 0 and a.stop is null and ($1::uuid[] is null or a.id = any ($1))
order by a.id, t.task
limit $2
