-- Turns due task $2 of batch $1 into a $3 (bulk, items, batch) with name $4 and input $5 (JSON text). Returns the reason if
-- that is not possible; null on success.
select milepost.release_other($1, $2, $3, $4, $5::text::jsonb)
