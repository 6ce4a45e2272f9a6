-- Whether a worker has ended or was never there. ?1 worker
SELECT NOT EXISTS (SELECT 1 FROM milepost_worker WHERE id = ?1 AND ended_at_ms IS NULL)
