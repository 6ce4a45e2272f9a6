-- Changes the settings of bulk job ?1, at ?7; NULL: unchanged.
INSERT INTO milepost_bulk_setting AS s
    (job_id, rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max, set_at_ms)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.job_id = ?1)
   -- A bulk job that a schedule created has no row in milepost_bulk before its first chunk.
   OR EXISTS (SELECT 1 FROM milepost_live l JOIN milepost_job j ON j.id = l.id
              JOIN milepost_bulk_definition d ON d.name = j.kind WHERE l.id = ?1)
ON CONFLICT (job_id) DO UPDATE SET
    rows_per_s = coalesce(excluded.rows_per_s, s.rows_per_s),
    duty = coalesce(excluded.duty, s.duty),
    chunk_ms = coalesce(excluded.chunk_ms, s.chunk_ms),
    chunk_rows_min = coalesce(excluded.chunk_rows_min, s.chunk_rows_min),
    chunk_rows_max = coalesce(excluded.chunk_rows_max, s.chunk_rows_max),
    set_at_ms = excluded.set_at_ms
