-- Deletes bulk jobs whose job does not exist. $1 limit
delete from milepost.bulk
where job_id in (
    select b.job_id from milepost.bulk b where not exists (select from milepost.job j where j.id = b.job_id) limit $1
)
returning job_id::text
