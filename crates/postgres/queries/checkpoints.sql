-- The last checkpoints of jobs $1, of those that have one.
select asked.id, last.checkpoint
from unnest($1::uuid[]) as asked (id)
cross join lateral (select checkpoint::text from milepost.progress where job_id = asked.id) as last
where last.checkpoint is not null
