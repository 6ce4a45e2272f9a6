-- Active workers, and the last 1,000 that ended after ?1. ?2: now
SELECT id, name, queues, kinds, started_at_ms, heartbeat_at_ms, ended_at_ms IS NULL AND lease_expires_at_ms <= ?2, ended_at_ms, died,
       (SELECT count(*) FROM milepost_live INDEXED BY milepost_live_worker WHERE milepost_live.worker_id = milepost_worker.id), slots
FROM milepost_worker
WHERE ended_at_ms IS NULL
   OR id IN (SELECT id FROM milepost_worker WHERE ended_at_ms > ?1 ORDER BY ended_at_ms DESC LIMIT 1000)
ORDER BY id
