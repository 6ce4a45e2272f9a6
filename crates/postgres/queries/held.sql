-- The runs that worker $1 holds, by claims that a failover does not undo.
select l.id, l.token, coalesce(l.claim_id, 0) as claim_id, l.attempt, l.max_attempts, j.kind, j.queue, j.priority, j.group_key,
       j.timeout_ms, j.created_at, j.payload::text as payload, j.nominal_at, j.batch_id, j.traceparent
from milepost.confirm_replication() confirmed
cross join milepost.live l
join milepost.job j on j.id = l.id
where l.worker_id = $1 and l.state = 'running'
