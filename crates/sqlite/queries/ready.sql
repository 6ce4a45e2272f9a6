-- Returns the next ready jobs of one lane, in claim order: one probe of live_claim.
-- ?1 queue, ?2 kind, ?3 priority, ?4 now, ?5 how many
SELECT milepost_live.id, milepost_live.state, milepost_live.attempt, milepost_live.max_attempts, milepost_live.token, milepost_live.group_key,
       milepost_job.payload, milepost_job.timeout_ms, milepost_job.created_at_ms, milepost_job.nominal_at_ms,
       milepost_job.batch_id, milepost_job.traceparent, milepost_live.ready_at_ms,
       milepost_live.start_reserved IS 1
FROM milepost_live INDEXED BY milepost_live_claim
CROSS JOIN milepost_job ON milepost_job.id = milepost_live.id
WHERE milepost_live.queue = ?1 AND milepost_live.kind = ?2 AND milepost_live.priority = ?3 AND milepost_live.ready_at_ms <= ?4
ORDER BY milepost_live.ready_at_ms, milepost_live.id
LIMIT ?5
