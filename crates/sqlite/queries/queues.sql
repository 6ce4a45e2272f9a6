-- Returns the paused queues with the time of the pause, and the served queues with the number of their workers. ?1 now
SELECT name, paused_at_ms, 0 FROM milepost_queue WHERE paused_at_ms IS NOT NULL
UNION ALL
SELECT served.value, NULL, count(*)
FROM milepost_worker INDEXED BY milepost_worker_alive, json_each(milepost_worker.queues) AS served
WHERE milepost_worker.ended_at_ms IS NULL AND milepost_worker.lease_expires_at_ms > ?1
GROUP BY served.value
