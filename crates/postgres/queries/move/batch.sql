-- Imports batches.
insert into milepost.batch (id, dag, version_id, key, state, stop, generation, waiting, due, active, failed, aborted,
                      succeeded, skipped, canceled, parent_id, parent_task, items_of, depth, nominal_at, created_at,
                      updated_at, ended_at, traceparent, nominal_zone)
select id, dag, version_id, key, state::milepost.batch_state, stop::milepost.verb, generation, waiting, due, active,
       failed, aborted, succeeded, skipped, canceled, parent_id, parent_task, items_of, depth, nominal_at, created_at,
       updated_at, ended_at, traceparent, nominal_zone
from unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[], $9::int[],
            $10::int[], $11::int[], $12::int[], $13::int[], $14::int[], $15::int[], $16::uuid[], $17::int[], $18::int[],
            $19::int[], $20::timestamptz[], $21::timestamptz[], $22::timestamptz[], $23::timestamptz[], $24::text[], $25::text[])
    as r(id, dag, version_id, key, state, stop, generation, waiting, due, active, failed, aborted, succeeded, skipped,
         canceled, parent_id, parent_task, items_of, depth, nominal_at, created_at, updated_at, ended_at, traceparent, nominal_zone)
