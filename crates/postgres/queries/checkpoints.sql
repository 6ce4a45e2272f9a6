-- The last checkpoints of those of jobs $1 that have one.
select asked.id, last.checkpoint
from unnest($1::uuid[]) as asked (id)
cross join lateral (select checkpoint::text from milepost.progress where job_id = asked.id) as last
where last.checkpoint is not null
