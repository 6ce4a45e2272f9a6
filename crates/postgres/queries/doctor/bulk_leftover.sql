-- Settings, failures and staged rows of bulk jobs that do not exist. Settings may be stored before the first chunk, and then
-- have no row in bulk. A failure belongs to the run that retries it, otherwise to the run in which it occurred. Files that
-- retention deletes are reported only if that is long overdue.
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
    union all
    select t.run, count(*)::text || ' staged rows without a file'
    from milepost.bulk_target t
    where not exists (select from milepost.bulk_file f where f.run = t.run)
    group by t.run
    union all
    select f.run, 'a staged file'
    from milepost.bulk_file f
    where f.touched_at < now() - interval '3 hours'
      and (f.started_at is null or not exists (select from milepost.bulk b where b.origin = f.run))
) r
order by what, r.detail
limit 10
