-- Active workers, and those that ended after ?1.
SELECT id, name, queues, kinds, started_at_ms, heartbeat_at_ms, ended_at_ms, died,
       (SELECT count(*) FROM milepost_live INDEXED BY milepost_live_worker WHERE milepost_live.worker_id = milepost_worker.id)
FROM milepost_worker
WHERE ended_at_ms IS NULL OR ended_at_ms > ?1
ORDER BY id
