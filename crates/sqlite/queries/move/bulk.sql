-- A page of bulk. ?1 how many, ?2 after this job
SELECT job_id, origin, retry_of, token, fingerprint, surveyed_at_ms, upper_key, total, total_exact, cursor_key, done,
       failed, chunks, chunk_rows, chunk_ms, busy_ms, held_ms, throttle, throttle_since_ms, started_at_ms,
       updated_at_ms, ended_at_ms
FROM milepost_bulk WHERE job_id > ?2 ORDER BY job_id LIMIT ?1
