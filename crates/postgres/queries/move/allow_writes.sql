-- Allows this transaction to change the tables that move $1 fills.
select set_config('milepost.move', $1::uuid::text, true)
