-- Records the results of a parked aggregate's deliveries by publisher $2. $12: since when it was due when its events were read.
select milepost.settle_parked($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12)
