-- Emits events through the public function; parallel arrays: $1 aggregate types, $2 aggregate ids, $3 event types, $4
-- payloads (JSON text), $5 ids, $6 sequence numbers, $7 headers (JSON text), $8 whether gaps are allowed. The caller has
-- checked the payloads.
select aggregate_seq, duplicate
from milepost.emit_many($1::text[], $2::text[], $3::text[], $4::text[]::json[], $5::uuid[], $6::bigint[], $7::text[]::jsonb[],
                        $8::boolean[], null)
