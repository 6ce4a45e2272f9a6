-- Frees keys of jobs that are gone, but for those that retention keeps longer than their job. $1 at most
delete from milepost.job_key
where (kind, key) in (
    select k.kind, k.key from milepost.job_key k
    where not exists (select from milepost.job j where j.id = k.job_id)
      and k.job_ended_at is null
    limit $1
)
returning key
