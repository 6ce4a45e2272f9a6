-- The next ready jobs of one lane, in their order: one probe of live_claim.
-- ?1 queue, ?2 kind, ?3 priority, ?4 now, ?5 how many
SELECT live.id, live.state, live.attempt, live.max_attempts, live.token, live.group_key,
       job.payload, job.timeout_ms, job.created_at_ms, job.nominal_at_ms
FROM live INDEXED BY live_claim
CROSS JOIN job ON job.id = live.id
WHERE live.queue = ?1 AND live.kind = ?2 AND live.priority = ?3 AND live.ready_at_ms <= ?4
ORDER BY live.ready_at_ms, live.id
LIMIT ?5
