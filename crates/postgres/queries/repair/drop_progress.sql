-- Deletes progress of jobs that do not exist. $1 limit
delete from milepost.progress
where job_id in (
    select p.job_id from milepost.progress p where not exists (select from milepost.job j where j.id = p.job_id) limit $1
)
returning job_id::text
