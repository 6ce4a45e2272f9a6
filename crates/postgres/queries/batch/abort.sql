-- Stops batch $1: $2 note, $3 grace in ms, $4 generation.
select changed, stopping from milepost.abort_batch($1, $2, $3, $4)
