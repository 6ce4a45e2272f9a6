-- Ends a worker that shuts down. ?1 worker, ?2 now
UPDATE milepost_worker SET ended_at_ms = ?2 WHERE id = ?1 AND ended_at_ms IS NULL
