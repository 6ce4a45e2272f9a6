-- Lets the events of dead letters $1 wait again; $2 who says so.
select milepost.retry_dead($1, $2)
