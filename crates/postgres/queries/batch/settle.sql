-- Sets the states of tasks: $1 batches, $2 tasks, $3 states, $4 reasons, parallel arrays.
select due_made, spread_left from milepost.settle($1, $2, $3::text[]::milepost.task_state[], $4)
