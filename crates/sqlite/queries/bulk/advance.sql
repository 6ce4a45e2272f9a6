-- Moves the cursor of run token ?2 of bulk job ?1 to key ?3 (NULL: unchanged), with ?4 targets done and ?5 failed in a chunk of ?6 planned
-- rows that took ?7 ms, at ?8. No row: fenced.
UPDATE milepost_bulk
SET cursor_key = coalesce(?3, cursor_key),
    done = done + ?4,
    failed = failed + ?5,
    chunks = chunks + 1,
    chunk_rows = ?6,
    chunk_ms = ?7,
    busy_ms = busy_ms + ?7,
    throttle = NULL,
    throttle_since_ms = NULL,
    updated_at_ms = ?8
WHERE job_id = ?1 AND token = ?2 AND ended_at_ms IS NULL
RETURNING done, failed, chunks
