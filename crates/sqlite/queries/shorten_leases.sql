-- Shortens leases that were renewed while the clock was ahead: the worker may be dead. ?1 now
UPDATE milepost_worker SET lease_expires_at_ms = ?1 + lease_ms
WHERE ended_at_ms IS NULL AND lease_expires_at_ms > ?1 + lease_ms + 5000
