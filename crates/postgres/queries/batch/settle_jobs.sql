-- Says to batches how jobs $1 of theirs stand now.
select due_made, spread_left from milepost.settle_jobs($1)
