-- Forgets workers that left nothing behind. ?1 which ended before this time, ?2 how many
DELETE FROM worker WHERE id IN (
    SELECT id FROM worker INDEXED BY worker_ended
    WHERE ended_at_ms < ?1
      AND NOT EXISTS (SELECT 1 FROM live INDEXED BY live_worker WHERE live.worker_id = worker.id)
    ORDER BY ended_at_ms LIMIT ?2
)
