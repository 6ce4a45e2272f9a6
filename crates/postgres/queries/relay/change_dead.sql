-- Applies an operation to a dead letter.
select milepost.change_dead($1, $2, $3)
