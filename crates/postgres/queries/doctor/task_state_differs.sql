-- Tasks whose state differs from that of their job or child batch.
select count(*) over () as count, o.batch_id::text as what,
       'task ' || o.task || ' is ' || o.state::text || ', ' || o.why as detail
from milepost.task_states_off() o
order by what, o.task
limit 10
