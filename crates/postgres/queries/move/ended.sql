-- Imports ended jobs. $8 results, as JSON text.
insert into milepost.ended (id, state, ended_at, started_at, token, attempt, max_attempts, result)
select id, state::milepost.job_state, ended_at, started_at, token, attempt, max_attempts, result::jsonb
from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::int[], $8::text[])
    as r(id, state, ended_at, started_at, token, attempt, max_attempts, result)
