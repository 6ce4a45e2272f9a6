-- Rows of batches that do not exist.
select count(*) over () as count, r.batch_id::text as what, r.detail
from (
    select t.batch_id, count(*)::text || ' tasks' as detail from milepost.batch_task t group by t.batch_id
    union all
    select i.batch_id, 'an input' from milepost.batch_input i
    union all
    select w.batch_id, count(*)::text || ' waits' from milepost.batch_wait w group by w.batch_id
    union all
    select s.batch_id, count(*)::text || ' signals' from milepost.batch_signal s group by s.batch_id
    union all
    select s.batch_id, count(*)::text || ' ends of tasks to be counted' from milepost.batch_spread s group by s.batch_id
    union all
    select h.batch_id, count(*)::text || ' history entries' from milepost.batch_history h group by h.batch_id
) r
where not exists (select from milepost.batch b where b.id = r.batch_id)
order by what, r.detail
limit 10
