-- Runs tasks $2 of batch $1 again: $3 note, $4 generation.
select milepost.rerun_tasks($1, $2, $3, $4)
