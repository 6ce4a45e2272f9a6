-- Returns whether a worker has ended or does not exist. ?1 worker
SELECT NOT EXISTS (SELECT 1 FROM milepost_worker WHERE id = ?1 AND ended_at_ms IS NULL)
