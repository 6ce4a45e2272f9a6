-- The keys of jobs in queue $1, none of them older than the id $2, that were retried.
select distinct j.key
from milepost.job j
join milepost.history h on h.job_id = j.id
where j.id >= $2 and j.queue = $1 and h.verb = 'retry'
