-- Returns when the next job of a lane becomes ready after a time: one index probe. ?1 queue, ?2 kind, ?3 priority, ?4 after
SELECT ready_at_ms FROM milepost_live INDEXED BY milepost_live_claim
WHERE queue = ?1 AND kind = ?2 AND priority = ?3 AND ready_at_ms > ?4
ORDER BY ready_at_ms
LIMIT 1
