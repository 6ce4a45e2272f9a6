-- Writes down what became of a parked aggregate's events, unless the slot is another publisher's than $11: after a failover, two can have had
-- it under the same token.
select milepost.settle_parked($1, $2, case when exists (
    select from milepost.subscription_slot s where s.subscription = $1 and s.slot = $2 and s.owner = $11) then $3 else -1 end,
    $4, $5, $6, $7::jsonb, $8, $9, $10)
