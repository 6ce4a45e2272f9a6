-- Moves positions, parks and gives up.
select floor, moved, moved_ns from milepost.advance_slots($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11::jsonb, $12::jsonb)
