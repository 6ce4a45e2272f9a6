-- Cancels tasks $2 of batch $1: $3 note, $4 grace in ms, $5 generation.
select changed, stopping from milepost.cancel_tasks($1, $2, $3, $4, $5)
