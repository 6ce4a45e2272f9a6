-- Marks a worker whose lease expired as dead. ?1 worker, ?2 now
UPDATE milepost_worker SET ended_at_ms = ?2, died = 1
WHERE id = ?1 AND ended_at_ms IS NULL AND lease_expires_at_ms <= ?2
