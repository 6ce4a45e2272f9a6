-- Records for run token ?2 of bulk job ?1 that its current chunk has ?3 planned rows, so that the chunk is the same when it is read again.
UPDATE milepost_bulk
SET chunk_rows = ?3
WHERE job_id = ?1 AND token = ?2 AND ended_at_ms IS NULL AND chunk_rows IS NOT ?3
