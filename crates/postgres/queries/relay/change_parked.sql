-- Applies an operation to the first event of a parked aggregate.
select milepost.change_parked($1, $2, $3, $4, $5::json)
