-- Deletes failures of bulk jobs that do not exist. $1 limit
delete from milepost.bulk_failure
where (job_id, pos) in (
    select f.job_id, f.pos from milepost.bulk_failure f
    where not exists (select from milepost.bulk b where b.job_id = coalesce(f.retried_by, f.job_id)) limit $1
)
returning coalesce(retried_by, job_id)::text
