-- Tasks whose counters differ from the states of their predecessors, and tasks that wait although they need not.
select count(*) over () as count, o.batch_id::text as what,
       'task ' || o.task || case
           when o.was = array[o.pre_cnt, o.succeeded, o.failed, o.skipped, o.canceled]
           then ' is waiting, but its predecessors already decide whether it runs'
           else ' counts ' || array_to_string(o.was, ' ') || ' open, succeeded, failed, skipped and canceled predecessors; their states give '
               || concat_ws(' ', o.pre_cnt, o.succeeded, o.failed, o.skipped, o.canceled)
       end as detail
from milepost.tallies_off() o
order by what, o.task
limit 10
