-- Bulk jobs whose job does not exist.
select count(*) over () as count, b.job_id::text as what, 'a row of bulk with ' || (b.done + b.failed)::text || ' processed targets' as detail
from milepost.bulk b
where not exists (select from milepost.job j where j.id = b.job_id)
order by what
limit 10
