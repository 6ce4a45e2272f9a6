-- Deletes ended workers that hold no jobs. ?1 which ended before this time, ?2 how many
DELETE FROM milepost_worker WHERE id IN (
    SELECT id FROM milepost_worker INDEXED BY milepost_worker_ended
    WHERE ended_at_ms < ?1
      AND NOT EXISTS (SELECT 1 FROM milepost_live INDEXED BY milepost_live_worker WHERE milepost_live.worker_id = milepost_worker.id)
    ORDER BY ended_at_ms LIMIT ?2
)
