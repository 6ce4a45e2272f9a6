-- Checks new signals and waits whose time has come, at most $1 of each.
select checked, due_made, spread_left from milepost.settle_waits($1)
