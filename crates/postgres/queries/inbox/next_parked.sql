-- Receives the next kept event, for consumer $1: $2 the aggregate's type, $3 its id.
select event_id, aggregate_seq, event_type, payload::text as payload, headers::text as headers, emitted_at
from milepost.next_parked($1, $2, $3)
