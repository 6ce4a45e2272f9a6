-- Imports states of live jobs.
insert into milepost.live (id, kind, queue, priority, state, ready_at, due_at, timed, started_at, failed_at, attempt, max_attempts,
                           token, worker_id, claim_id, group_key, stop_verb, stop_at, stop_note, start_reserved)
select id, kind, queue, priority, state::milepost.job_state, ready_at, due_at, case when due_at > now() then true end, started_at, failed_at, attempt, max_attempts,
       token, worker_id, claim_id, group_key, stop_verb::milepost.verb, stop_at, stop_note, start_reserved
from unnest($1::uuid[], $2::text[], $3::text[], $4::smallint[], $5::text[], $6::timestamptz[], $7::timestamptz[],
            $8::timestamptz[], $9::timestamptz[], $10::int[], $11::int[], $12::int[], $13::int[], $14::int[], $15::text[],
            $16::text[], $17::timestamptz[], $18::text[], $19::boolean[])
    as r(id, kind, queue, priority, state, ready_at, due_at, started_at, failed_at, attempt, max_attempts, token, worker_id,
         claim_id, group_key, stop_verb, stop_at, stop_note, start_reserved)
