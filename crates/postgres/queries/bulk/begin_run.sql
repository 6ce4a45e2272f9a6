-- Registers job $1 as a bulk job, over the failures of job $2 if that is not null.
insert into milepost.bulk (job_id, origin, retry_of)
select $1, coalesce((select origin from milepost.bulk where job_id = $2), $1), $2
on conflict (job_id) do nothing
