-- Imports histories of batches.
insert into milepost.batch_history (pos, batch_id, at, generation, task, key, job_id, verb, from_state, to_state, note)
overriding system value
select pos, batch_id, at, generation, task, key, job_id, verb::milepost.verb, from_state, to_state, note
from unnest($1::bigint[], $2::uuid[], $3::timestamptz[], $4::int[], $5::int[], $6::text[], $7::uuid[], $8::text[], $9::text[],
            $10::text[], $11::text[])
    as r(pos, batch_id, at, generation, task, key, job_id, verb, from_state, to_state, note)
