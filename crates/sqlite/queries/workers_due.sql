-- Counts the workers that retention can delete. ?1 those that ended before this time
SELECT count(*) FROM milepost_worker INDEXED BY milepost_worker_ended
WHERE ended_at_ms < ?1
  AND NOT EXISTS (SELECT 1 FROM milepost_live INDEXED BY milepost_live_worker WHERE milepost_live.worker_id = milepost_worker.id)
