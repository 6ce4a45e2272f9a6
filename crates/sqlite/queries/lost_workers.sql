-- Workers whose lease expired, and ended workers that still hold jobs: one index probe for each worker that holds any.
-- ?1 now
WITH RECURSIVE holder (id) AS (
    SELECT min(worker_id) FROM milepost_live INDEXED BY milepost_live_worker WHERE worker_id IS NOT NULL
    UNION ALL
    SELECT (SELECT min(milepost_live.worker_id) FROM milepost_live INDEXED BY milepost_live_worker WHERE milepost_live.worker_id > holder.id)
    FROM holder
    WHERE holder.id IS NOT NULL
)
SELECT id FROM milepost_worker INDEXED BY milepost_worker_alive WHERE ended_at_ms IS NULL AND lease_expires_at_ms <= ?1
UNION
SELECT holder.id FROM holder JOIN milepost_worker ON milepost_worker.id = holder.id WHERE milepost_worker.ended_at_ms IS NOT NULL
