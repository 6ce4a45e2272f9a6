-- Moves positions, parks and gives up.
select floor, moved from milepost.advance_slots($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb, $11::jsonb)
