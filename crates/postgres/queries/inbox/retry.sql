-- Lets the events of dead letters $1 wait again. Who says so is noted by the caller.
select milepost.retry_dead($1, null)
