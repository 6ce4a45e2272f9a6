-- The queues that are served or paused. ?1 now
SELECT name, paused_at_ms FROM milepost_queue WHERE paused_at_ms IS NOT NULL
UNION ALL
SELECT DISTINCT served.value, NULL
FROM milepost_worker INDEXED BY milepost_worker_alive, json_each(milepost_worker.queues) AS served
WHERE milepost_worker.ended_at_ms IS NULL AND milepost_worker.lease_expires_at_ms > ?1
