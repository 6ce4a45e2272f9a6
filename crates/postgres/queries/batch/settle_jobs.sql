-- Applies the current states of jobs $1 to their tasks.
select due_made, spread_left from milepost.settle_jobs($1)
