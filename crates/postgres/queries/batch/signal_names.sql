-- Up to $2 names of signals that tasks of batch $1 wait for; no row if the batch does not exist.
select array(
    select d.spec #>> '{wait,signal}' from milepost.dag_task d
    where d.version_id = a.version_id and d.spec ? 'wait' and d.spec #>> '{wait,signal}' is not null and a.items_of is null
    order by 1 limit $2)
from milepost.batch a where a.id = $1
