-- Locks up to $2 runs that dead worker $1 held. One whose row a half-done transaction still has is left for
-- later: its connection may take long to die.
select l.id, l.token, l.attempt, l.max_attempts, l.kind, l.stop_verb::text as stop_verb, l.group_key is not null as grouped,
       exists (select from milepost.job j where j.id = l.id and j.batch_id is not null) as task
from milepost.live l
where l.worker_id = $1 and l.state = 'running'
order by l.id
limit $2
for update skip locked
