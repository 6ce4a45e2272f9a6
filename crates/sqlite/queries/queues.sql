-- The queues that are served or paused. ?1 now
SELECT name, paused_at_ms FROM queue WHERE paused_at_ms IS NOT NULL
UNION ALL
SELECT DISTINCT served.value, NULL
FROM worker INDEXED BY worker_alive, json_each(worker.queues) AS served
WHERE worker.ended_at_ms IS NULL AND worker.lease_expires_at_ms > ?1
