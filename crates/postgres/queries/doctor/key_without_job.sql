-- Keys of jobs that do not exist, except those that retention keeps longer than their job.
select count(*) over () as count, k.key as what, 'of kind ' || k.kind as detail
from milepost.job_key k
where not exists (select from milepost.job j where j.id = k.job_id)
  and k.job_ended_at is null
order by what
limit 10
