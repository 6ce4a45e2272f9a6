-- Deletes settings of bulk jobs that do not exist. $1 limit
delete from milepost.bulk_setting
where job_id in (
    select s.job_id from milepost.bulk_setting s
    where not exists (select from milepost.job j where j.id = s.job_id) limit $1
)
returning job_id::text
