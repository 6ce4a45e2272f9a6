-- Bulk jobs whose job is gone.
select count(*) over () as count, b.job_id::text as what, 'a row of bulk, ' || (b.done + b.failed)::text || ' targets on' as detail
from milepost.bulk b
where not exists (select from milepost.job j where j.id = b.job_id)
order by what
limit 10
