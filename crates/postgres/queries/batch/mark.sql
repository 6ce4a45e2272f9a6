-- Sets the outcome of task $2 of batch $1 to $3: $4 note, $5 generation.
select milepost.mark_task($1, $2, $3::text::milepost.task_state, $4, $5)
