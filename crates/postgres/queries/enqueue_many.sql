-- Enqueues jobs through the public function; parallel arrays: $1 kinds, $2 payloads (JSON text), $3 keys, $4 queues, $5
-- priorities, $6 groups, $7 start times, $8 delays in ms, $9 max attempts, $10 timeouts in ms, $11 ids; $12 ticks that the
-- jobs are for, $13 traces that they follow from. The caller has checked the payloads.
select job_id, duplicate
from milepost.enqueue_many($1::text[], $2::text[]::jsonb[], $3::text[], $4::text[], $5::int[], $6::text[],
                           $7::timestamptz[], $8::bigint[], $9::int[], $10::bigint[], $11::uuid[], null,
                           $12::timestamptz[], $13::text[])
