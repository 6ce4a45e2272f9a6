-- Settings and failures of bulk jobs that are gone. Settings may come before the first chunk, and then have no row of
-- bulk beside them. A failure belongs to the run that tries it again, else to its own.
select count(*) over () as count, r.job_id::text as what, r.detail
from (
    select s.job_id, 'a row of settings' as detail
    from milepost.bulk_setting s
    where not exists (select from milepost.job j where j.id = s.job_id)
    union all
    select coalesce(f.retried_by, f.job_id), count(*)::text || ' failures'
    from milepost.bulk_failure f
    where not exists (select from milepost.bulk b where b.job_id = coalesce(f.retried_by, f.job_id))
    group by coalesce(f.retried_by, f.job_id)
) r
order by what, r.detail
limit 10
