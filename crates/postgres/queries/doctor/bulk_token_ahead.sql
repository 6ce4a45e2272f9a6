-- Bulk jobs with a token above that of their job.
select count(*) over () as count, d.job_id::text as what, 'its progress has token ' || d.token::text || ', its job has ' || d.of_job::text as detail
from (
    select b.job_id, b.token, greatest(l.token, e.token) as of_job
    from milepost.bulk b
    left join milepost.live l on l.id = b.job_id
    left join milepost.ended e on e.id = b.job_id
) d
where d.token > d.of_job
order by what
limit 10
