-- Frees keys of jobs that are gone. $1 at most
delete from milepost.job_key
where (kind, key) in (
    select k.kind, k.key from milepost.job_key k
    where not exists (select from milepost.job j where j.id = k.job_id)
    limit $1
)
returning key
