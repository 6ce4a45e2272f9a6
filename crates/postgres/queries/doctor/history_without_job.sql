-- Histories of jobs that do not exist.
select count(*) over () as count, h.job_id::text as what, count(*)::text || ' entries' as detail
from milepost.history h
where not exists (select from milepost.job j where j.id = h.job_id)
group by h.job_id
order by what
limit 10
