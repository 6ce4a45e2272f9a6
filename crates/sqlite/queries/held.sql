-- What a worker holds. ?1 worker
SELECT live.id, live.token, live.claim_id, live.kind, live.queue, job.payload, live.attempt,
       live.max_attempts, live.priority, live.group_key, job.timeout_ms, job.created_at_ms,
       job.nominal_at_ms
FROM live INDEXED BY live_worker
CROSS JOIN job ON job.id = live.id
WHERE live.worker_id = ?1 AND live.state = 'running'
