-- Returns whether an active worker serves a kind in a queue. ?1 kind, ?2 queue, ?3 now
SELECT EXISTS (
    SELECT 1 FROM milepost_worker INDEXED BY milepost_worker_alive
    WHERE ended_at_ms IS NULL AND lease_expires_at_ms > ?3
      AND EXISTS (SELECT 1 FROM json_each(milepost_worker.kinds) WHERE value = ?1)
      AND EXISTS (SELECT 1 FROM json_each(milepost_worker.queues) WHERE value = ?2)
)
