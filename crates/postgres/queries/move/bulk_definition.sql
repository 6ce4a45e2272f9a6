-- Imports definitions of bulk jobs.
insert into milepost.bulk_definition (name, type, category, group_key, queue, priority, max_attempts, chunk_ms,
                                      chunk_rows_min, chunk_rows_max, rows_per_s, duty, failures_max, then_name,
                                      effects, fingerprint, columns, source, updated_at, place, statements)
select name, type, category, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max,
       rows_per_s, duty, failures_max, then_name, effects, fingerprint, columns::jsonb, source, updated_at, place,
       statements::jsonb
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::int[], $8::bigint[],
                     $9::int[], $10::int[], $11::float8[], $12::float8[], $13::bigint[], $14::text[], $15::text[],
                     $16::text[], $17::text[], $18::text[], $19::timestamptz[], $20::text[], $21::text[])
    as r(name, type, category, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max,
         rows_per_s, duty, failures_max, then_name, effects, fingerprint, columns, source, updated_at, place, statements)
