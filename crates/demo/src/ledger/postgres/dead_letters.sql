-- The keys of the dead letters in queue $1, none of which is older than the id $2.
select j.key
from milepost.job j
join milepost.live l on l.id = j.id
where j.id >= $2 and j.queue = $1 and l.state = 'failed'
