-- Returns whether any lease ends later than a lease that starts now: it was renewed while the clock was ahead. ?1 now
SELECT EXISTS (SELECT 1 FROM milepost_worker INDEXED BY milepost_worker_alive WHERE ended_at_ms IS NULL AND lease_expires_at_ms > ?1 + lease_ms + 5000)
