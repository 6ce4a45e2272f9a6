-- Returns the settings of bulk job ?1 made by operators.
SELECT rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max FROM milepost_bulk_setting WHERE job_id = ?1
