-- Returns the jobs that a worker holds. ?1 worker
SELECT milepost_live.id, milepost_live.token, milepost_live.claim_id, milepost_live.kind, milepost_live.queue, milepost_job.payload, milepost_live.attempt,
       milepost_live.max_attempts, milepost_live.priority, milepost_live.group_key, milepost_job.timeout_ms, milepost_job.created_at_ms,
       milepost_job.nominal_at_ms, milepost_job.batch_id, milepost_job.traceparent
FROM milepost_live INDEXED BY milepost_live_worker
CROSS JOIN milepost_job ON milepost_job.id = milepost_live.id
WHERE milepost_live.worker_id = ?1 AND milepost_live.state = 'running'
