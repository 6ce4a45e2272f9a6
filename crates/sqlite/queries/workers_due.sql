-- How many workers there are to forget. ?1 those that ended before this time
SELECT count(*) FROM worker INDEXED BY worker_ended
WHERE ended_at_ms < ?1
  AND NOT EXISTS (SELECT 1 FROM live INDEXED BY live_worker WHERE live.worker_id = worker.id)
