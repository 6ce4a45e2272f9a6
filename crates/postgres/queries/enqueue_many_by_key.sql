-- Enqueues jobs of which some have rules for duplicates, through the public function: $1 to $13 as in enqueue_many, $14 rules, objects
-- as JSON text. The caller has checked the payloads.
select job_id, outcome
from milepost.enqueue_many_by_key($1::text[], $2::text[]::jsonb[], $14::text[]::jsonb[], $3::text[], $4::text[], $5::int[], $6::text[],
                             $7::timestamptz[], $8::bigint[], $9::int[], $10::bigint[], $11::uuid[], null,
                             $12::timestamptz[], $13::text[])
