-- Jobs whose key is not stored in job_key.
select count(*) over () as count, j.id::text as what, 'key ' || j.key || ' of kind ' || j.kind as detail
from milepost.job j
where j.key is not null and j.key_released is not true
  and not exists (select from milepost.job_key k where k.kind = j.kind and k.key = j.key)
order by what
limit 10
