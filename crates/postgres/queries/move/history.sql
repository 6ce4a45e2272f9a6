-- Imports state changes of jobs.
insert into milepost.history (pos, job_id, at, verb, from_state, to_state, attempt, token, worker_id, ready_at, error_code,
                              error_message, note)
overriding system value
select pos, job_id, at, verb::milepost.verb, from_state::milepost.job_state, to_state::milepost.job_state, attempt, token,
       worker_id, ready_at, error_code, error_message, note
from unnest($1::bigint[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[], $9::int[],
            $10::timestamptz[], $11::text[], $12::text[], $13::text[])
    as r(pos, job_id, at, verb, from_state, to_state, attempt, token, worker_id, ready_at, error_code, error_message, note)
