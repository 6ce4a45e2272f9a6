-- Keeps that the chunk that run token ?2 of bulk job ?1 has in hand was to have ?3 rows, so that it is the same when it is read again.
UPDATE milepost_bulk
SET chunk_rows = ?3
WHERE job_id = ?1 AND token = ?2 AND ended_at_ms IS NULL AND chunk_rows IS NOT ?3
