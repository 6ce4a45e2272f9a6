-- Changes the settings of bulk job ?1, at ?7; NULL: unchanged, or, if ?8, removed, so that the definition applies.
INSERT INTO milepost_bulk_setting AS s
    (job_id, rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max, set_at_ms)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.job_id = ?1)
   -- A bulk job that a schedule created has no row in milepost_bulk before its first chunk.
   OR EXISTS (SELECT 1 FROM milepost_live l JOIN milepost_job j ON j.id = l.id
              JOIN milepost_bulk_definition d ON d.name = j.kind WHERE l.id = ?1)
ON CONFLICT (job_id) DO UPDATE SET
    rows_per_s = coalesce(excluded.rows_per_s, CASE WHEN NOT ?8 THEN s.rows_per_s END),
    duty = coalesce(excluded.duty, CASE WHEN NOT ?8 THEN s.duty END),
    chunk_ms = coalesce(excluded.chunk_ms, CASE WHEN NOT ?8 THEN s.chunk_ms END),
    chunk_rows_min = coalesce(excluded.chunk_rows_min, CASE WHEN NOT ?8 THEN s.chunk_rows_min END),
    chunk_rows_max = coalesce(excluded.chunk_rows_max, CASE WHEN NOT ?8 THEN s.chunk_rows_max END),
    set_at_ms = excluded.set_at_ms
