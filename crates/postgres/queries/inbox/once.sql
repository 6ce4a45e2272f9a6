-- Whether consumer $1 has event $2 for the first time.
select milepost.once($1, $2)
