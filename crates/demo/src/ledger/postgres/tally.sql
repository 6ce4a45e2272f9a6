-- Counts of the jobs of queue $1, none of which is older than the id $2, and of their history. A job is open if it has neither ended nor
-- become a dead letter, whichever table it is in.
with own as materialized (
    select id from milepost.job where id >= $2 and queue = $1
),
happened as (
    select count(*) filter (where h.verb = 'claim') as attempts,
           count(*) filter (where h.from_state = 'running') as ends,
           count(*) filter (where h.verb = 'succeed') as successes,
           count(*) filter (where h.verb = 'retry' and h.error_code <> 'lease_lost') as retries,
           count(*) filter (where h.error_code = 'lease_lost') as rescued
    from milepost.history h
    join own on own.id = h.job_id
)
select (select count(*) from own) as jobs,
       (
           select count(*) from own
           where not exists (select from milepost.ended e where e.id = own.id)
             and not exists (select from milepost.live l where l.id = own.id and l.state = 'failed')
       ) as open,
       attempts, ends, successes, retries, rescued
from happened
