-- Writes down what became of a parked aggregate's events.
select milepost.settle_parked($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9, $10)
