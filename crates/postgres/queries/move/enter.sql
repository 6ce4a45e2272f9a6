-- Lets this transaction change what move $1 fills.
select set_config('milepost.move', $1::uuid::text, true)
