-- The wait, as it is defined, of the task of batch $1 that waits for signal $2.
select (d.spec -> 'wait')::text
from milepost.batch a
join milepost.dag_task d on d.version_id = a.version_id and d.spec ? 'wait' and d.spec #>> '{wait,signal}' = $2
where a.id = $1 and a.items_of is null
