-- A page of worker. ?1 how many, ?2 after this id
SELECT id, name, queues, kinds, lease_ms, started_at_ms, heartbeat_at_ms, lease_expires_at_ms, ended_at_ms, died,
       EXISTS (SELECT 1 FROM milepost_live INDEXED BY milepost_live_worker WHERE milepost_live.worker_id = milepost_worker.id)
FROM milepost_worker WHERE id > ?2 ORDER BY id LIMIT ?1
