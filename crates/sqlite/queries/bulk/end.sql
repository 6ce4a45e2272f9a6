-- Ends run token ?2 of bulk job ?1 at ?3; returns its totals. No row: fenced.
UPDATE milepost_bulk
SET ended_at_ms = ?3, updated_at_ms = ?3, throttle = NULL, throttle_since_ms = NULL
WHERE job_id = ?1 AND token = ?2 AND ended_at_ms IS NULL
RETURNING json_object('done', done, 'failed', failed, 'chunks', chunks)
