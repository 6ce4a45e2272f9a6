-- The operators' settings of bulk job $1.
select rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max from milepost.bulk_setting where job_id = $1
