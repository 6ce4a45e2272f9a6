-- Renews a lease that has not expired. ?1 worker, ?2 now
UPDATE milepost_worker SET heartbeat_at_ms = ?2, lease_expires_at_ms = ?2 + lease_ms
WHERE id = ?1 AND ended_at_ms IS NULL AND lease_expires_at_ms > ?2
