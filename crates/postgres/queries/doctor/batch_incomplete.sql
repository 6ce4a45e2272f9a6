-- Batches that have not ended and whose input or tasks are missing.
select count(*) over () as count, d.id::text as what,
       case when not d.has_input then 'its input is missing' else 'tasks found: ' || d.found || ', expected: ' || d.asked end as detail
from (
    select a.id, i.batch_id is not null as has_input, coalesce(t.found, 0) as found,
           case when a.items_of is null then v.tasks
                when jsonb_typeof(i.input) = 'array' then jsonb_array_length(i.input) else 0 end as asked
    from milepost.batch a
    join milepost.dag_version v on v.id = a.version_id
    left join milepost.batch_input i on i.batch_id = a.id
    left join (select batch_id, count(*) as found from milepost.batch_task group by batch_id) t on t.batch_id = a.id
    where a.ended_at is null
) d
where not d.has_input or d.found <> d.asked
order by what
limit 10
