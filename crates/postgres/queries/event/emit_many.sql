-- Emits events through the public function; aligned arrays: $1 types of aggregates, $2 their ids, $3 types of events,
-- $4 payloads (JSON text), $5 ids, $6 sequences, $7 headers (JSON text), $8 whether these may leave others out. Payloads were
-- measured before.
select aggregate_seq, duplicate
from milepost.emit_many($1::text[], $2::text[], $3::text[], $4::text[]::json[], $5::uuid[], $6::bigint[], $7::text[]::jsonb[],
                        $8::boolean[], null)
