-- Inserts missing keys of jobs, if no other job has the same key. $1 limit
insert into milepost.job_key (kind, key, job_id)
select j.kind, j.key, j.id from milepost.job j
where j.key is not null and j.key_released is not true
  and not exists (select from milepost.job_key k where k.kind = j.kind and k.key = j.key)
  and not exists (select from milepost.job o where o.kind = j.kind and o.key = j.key and o.id <> j.id and o.key_released is not true)
order by j.kind, j.key
limit $1
on conflict do nothing
returning job_id::text
