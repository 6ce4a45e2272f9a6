-- Does something with an event that was given up.
select milepost.change_dead($1, $2, $3)
