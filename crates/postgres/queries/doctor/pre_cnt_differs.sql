-- Tasks whose counters are not what their predecessors say, and those that wait though they need not.
select count(*) over () as count, o.batch_id::text as what,
       'task ' || o.task || case
           when o.was = array[o.pre_cnt, o.succeeded, o.failed, o.skipped, o.canceled]
           then ' waits, but all that it waits for has ended'
           else ' counts ' || array_to_string(o.was, ' ') || ' open, succeeded, failed, skipped and canceled; its predecessors are '
               || concat_ws(' ', o.pre_cnt, o.succeeded, o.failed, o.skipped, o.canceled)
       end as detail
from milepost.tallies_off() o
order by what, o.task
limit 10
