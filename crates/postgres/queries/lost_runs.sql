-- Locks up to $2 runs that dead worker $1 held.
select l.id, l.token, l.attempt, l.max_attempts, l.kind, l.stop_verb::text as stop_verb, l.group_key is not null as grouped
from milepost.live l
where l.worker_id = $1 and l.state = 'running'
order by l.id
limit $2
for update
