-- Imports the progress of bulk jobs. $7 last keys and $10 cursors, as JSON text.
insert into milepost.bulk (job_id, origin, retry_of, token, fingerprint, surveyed_at, upper_key, total, total_exact,
                           cursor_key, done, failed, chunks, chunk_rows, chunk_ms, busy_ms, held_ms, throttle,
                           throttle_since, started_at, updated_at, ended_at)
select job_id, origin, retry_of, token, fingerprint, surveyed_at, milepost.key_of_texts(upper_key::jsonb), total, total_exact,
       milepost.key_of_texts(cursor_key::jsonb), done, failed, chunks, chunk_rows, chunk_ms, busy_ms, held_ms, throttle,
       throttle_since, started_at, updated_at, ended_at
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::timestamptz[], $7::text[], $8::bigint[],
            $9::boolean[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::int[], $15::bigint[],
            $16::bigint[], $17::bigint[], $18::text[], $19::timestamptz[], $20::timestamptz[], $21::timestamptz[],
            $22::timestamptz[])
    as r(job_id, origin, retry_of, token, fingerprint, surveyed_at, upper_key, total, total_exact, cursor_key, done,
         failed, chunks, chunk_rows, chunk_ms, busy_ms, held_ms, throttle, throttle_since, started_at, updated_at, ended_at)
