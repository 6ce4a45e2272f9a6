-- Says that task $2 of batch $1 ended as $3: $4 note, $5 generation.
select milepost.mark_task($1, $2, $3::text::milepost.task_state, $4, $5)
