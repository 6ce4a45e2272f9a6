-- Ends the wait for missing events whose time limit has passed, of consumer $1 (null: all): $2 limit of events.
select gaps, letters from milepost.give_up_gaps($1, $2)
