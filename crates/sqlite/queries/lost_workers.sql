-- Workers whose lease ran out, and those that ended and left jobs behind: one probe a worker that holds any.
-- ?1 now
WITH RECURSIVE holder (id) AS (
    SELECT min(worker_id) FROM live INDEXED BY live_worker WHERE worker_id IS NOT NULL
    UNION ALL
    SELECT (SELECT min(live.worker_id) FROM live INDEXED BY live_worker WHERE live.worker_id > holder.id)
    FROM holder
    WHERE holder.id IS NOT NULL
)
SELECT id FROM worker INDEXED BY worker_alive WHERE ended_at_ms IS NULL AND lease_expires_at_ms <= ?1
UNION
SELECT holder.id FROM holder JOIN worker ON worker.id = holder.id WHERE worker.ended_at_ms IS NOT NULL
