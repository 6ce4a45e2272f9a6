-- Imports jobs. $4 payloads, as JSON text.
insert into milepost.job (id, kind, queue, payload, key, group_key, priority, max_attempts, timeout_ms, created_at, nominal_at,
                          batch_id, task, traceparent, key_released)
select id, kind, queue, payload::jsonb, key, group_key, priority, max_attempts, timeout_ms, created_at, nominal_at,
       batch_id, task, traceparent, nullif(key_released, false)
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::int[], $9::bigint[],
            $10::timestamptz[], $11::timestamptz[], $12::uuid[], $13::int[], $14::text[], $15::bool[])
    as r(id, kind, queue, payload, key, group_key, priority, max_attempts, timeout_ms, created_at, nominal_at, batch_id,
         task, traceparent, key_released)
