-- Gives up gaps whose time is over, of consumer $1 or all: $2 how many events.
select gaps, letters from milepost.give_up_gaps($1, $2)
