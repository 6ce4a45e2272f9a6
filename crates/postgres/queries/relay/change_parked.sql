-- Applies an operation to the first event of a parked aggregate; only if it is $6, unless that is null.
select milepost.change_parked($1, $2, $3, $4, $5::json, $6)
