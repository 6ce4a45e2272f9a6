-- Jobs whose key belongs to another job that has not taken it by a rule.
select count(*) over () as count, j.id::text as what, 'key ' || j.key || ' of kind ' || j.kind as detail
from milepost.job j
join milepost.job_key k on k.kind = j.kind and k.key = j.key
where k.job_id <> j.id and j.key_released is not true
order by what
limit 10
