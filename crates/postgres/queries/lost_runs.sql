-- Locks up to $2 runs that dead worker $1 held. A run whose row is locked by an open transaction is left for later: its
-- connection may take long to die.
-- progressed: the run belongs to a bulk job and has processed a chunk since it was claimed.
-- task uses a scalar subquery: an EXISTS could be planned as a hash of all jobs, which no setting prevents from PostgreSQL
-- 18 on.
select l.id, l.token, l.attempt, l.max_attempts, l.kind, l.stop_verb::text as stop_verb, l.group_key is not null as grouped,
       coalesce((select j.batch_id is not null from milepost.job j where j.id = l.id), false) as task,
       coalesce((select b.token = l.token and b.chunks > b.chunks_before from milepost.bulk b where b.job_id = l.id), false) as progressed
from milepost.live l
where l.worker_id = $1 and l.state = 'running'
order by l.id
limit $2
for update skip locked
