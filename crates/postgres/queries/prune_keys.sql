-- Deletes up to $2 keys whose jobs were deleted, and ended more than $1 ms ago.
with due as materialized (
    select kind, key from milepost.job_key
    where job_ended_at is not null and job_ended_at < now() - $1::bigint * interval '1 millisecond'
    order by job_ended_at
    limit $2
    for update skip locked
)
delete from milepost.job_key k using due where k.kind = due.kind and k.key = due.key
