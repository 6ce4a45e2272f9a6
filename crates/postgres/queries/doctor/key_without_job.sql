-- Keys of jobs that are gone.
select count(*) over () as count, k.key as what, 'of kind ' || k.kind as detail
from milepost.job_key k
where not exists (select from milepost.job j where j.id = k.job_id)
order by what
limit 10
