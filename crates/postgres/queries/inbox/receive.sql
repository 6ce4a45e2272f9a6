-- Receives an event for consumer $1, if it is the next one of its aggregate: $2 the aggregate's type, $3 its id, $4 the
-- sequence number, $5 the event's id, $6 its type, $7 payload and $8 headers (JSON text), $9 when it was emitted.
select verdict, more from milepost.receive($1, $2, $3, $4, $5, $6, $7::text::json, $8::text::jsonb, $9)
