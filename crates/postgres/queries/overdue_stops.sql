-- Locks up to $1 running jobs that were asked to stop and whose grace time is over.
select l.id, l.token, l.stop_verb::text as verb, l.group_key is not null as grouped
from milepost.live l
where l.stop_at < now() and l.state = 'running'
order by l.id
limit $1
for update skip locked
