-- Imports the operators' settings of bulk jobs.
insert into milepost.bulk_setting (job_id, rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max, given, set_at)
select * from unnest($1::uuid[], $2::float8[], $3::float8[], $4::bigint[], $5::int[], $6::int[], $7::bigint[],
                     $8::timestamptz[])
