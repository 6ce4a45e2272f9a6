-- Moves positions; parks and dead-letters events. $13: the epoch in which the positions were read.
select floor, moved, moved_ns from milepost.advance_slots($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11::jsonb, $12::jsonb, $13)
