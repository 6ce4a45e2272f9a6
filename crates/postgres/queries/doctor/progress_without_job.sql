-- Progress of jobs that do not exist.
select count(*) over () as count, p.job_id::text as what, 'a row of progress' as detail
from milepost.progress p
where not exists (select from milepost.job j where j.id = p.job_id)
order by what
limit 10
