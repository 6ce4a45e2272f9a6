-- Moves the cursor of run token $2 of bulk job $1 to key $3 (JSON text; null: unchanged), with $4 targets done and $5 failed
-- in a chunk of size $6 rows that took $7 ms. No row: fenced.
update milepost.bulk
set cursor_key = coalesce($3::text::jsonb, cursor_key),
    done = done + $4,
    failed = failed + $5,
    chunks = chunks + 1,
    chunk_rows = $6,
    chunk_ms = $7,
    busy_ms = busy_ms + $7,
    throttle = null,
    throttle_since = null,
    updated_at = now()
where job_id = $1 and token = $2 and ended_at is null
returning done, failed, chunks
