-- Makes due task $2 of batch $1 wait: $3 signal, $4 time in ms, $5 fixed time, $6 the state after that time, $7 the note for the history.
select milepost.begin_wait($1, $2, $3, $4, $5, $6::text::milepost.task_state, $7)
