-- A page of bulk_setting. ?1 how many, ?2 after this job
SELECT job_id, rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max, given, set_at_ms
FROM milepost_bulk_setting WHERE job_id > ?2 ORDER BY job_id LIMIT ?1
