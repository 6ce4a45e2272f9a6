-- Tasks that stand elsewhere than their job or their inner batch.
select count(*) over () as count, o.batch_id::text as what,
       'task ' || o.task || ' stands as ' || o.state::text || ', ' || o.why as detail
from milepost.task_states_off() o
order by what, o.task
limit 10
