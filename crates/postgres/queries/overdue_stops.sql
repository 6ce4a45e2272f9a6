-- Locks those of jobs $1 that still run and whose grace time has passed.
-- task uses a scalar subquery: an EXISTS could be planned as a hash of all jobs, which no setting prevents from PostgreSQL
-- 18 on.
select l.id, l.token, l.stop_verb::text as verb, l.group_key is not null as grouped,
       coalesce((select j.batch_id is not null from milepost.job j where j.id = l.id), false) as task
from milepost.live l
where l.id = any ($1::uuid[]) and l.state = 'running' and l.stop_at < now()
order by l.id
for update skip locked
