-- Deletes keys of jobs that do not exist, except those that retention keeps longer than their job. $1 limit
delete from milepost.job_key
where (kind, key) in (
    select k.kind, k.key from milepost.job_key k
    where not exists (select from milepost.job j where j.id = k.job_id)
      and k.job_ended_at is null
    limit $1
)
returning key
