-- Bulk jobs whose counted failures differ from the stored ones. Fewer may be stored if they were assigned to a run that
-- retried them and was deleted, or if retention has begun to delete a job that had ended before.
select count(*) over () as count, d.job_id::text as what, 'counted ' || d.failed::text || ' failures, ' || d.found::text || ' are stored' as detail
from (
    select b.job_id, b.failed, coalesce(f.found, 0) as found, coalesce(s.given, 0) as given
    from milepost.bulk b
    left join (select job_id, count(*) as found from milepost.bulk_failure group by job_id) f on f.job_id = b.job_id
    left join milepost.bulk_setting s on s.job_id = b.job_id
) d
where d.found > d.failed
   or d.found < d.failed - d.given
      and exists (select from milepost.history h where h.job_id = d.job_id and h.verb = 'create')
      and not exists (
          select from milepost.history h
          where h.job_id = d.job_id and h.to_state in ('succeeded', 'canceled', 'skipped', 'failed')
      )
order by what
limit 10
