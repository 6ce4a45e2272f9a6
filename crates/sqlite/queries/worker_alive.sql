-- Returns whether a worker's lease is valid. ?1 worker, ?2 now
SELECT 1 FROM milepost_worker WHERE id = ?1 AND ended_at_ms IS NULL AND lease_expires_at_ms > ?2
