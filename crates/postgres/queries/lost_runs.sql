-- Locks up to $2 runs that dead worker $1 held. One whose row a half-done transaction still has is left for
-- later: its connection may take long to die.
-- A scalar subquery for task: an exists could be planned as a hash of all jobs, which from PostgreSQL 18 on no setting prevents.
select l.id, l.token, l.attempt, l.max_attempts, l.kind, l.stop_verb::text as stop_verb, l.group_key is not null as grouped,
       coalesce((select j.batch_id is not null from milepost.job j where j.id = l.id), false) as task
from milepost.live l
where l.worker_id = $1 and l.state = 'running'
order by l.id
limit $2
for update skip locked
