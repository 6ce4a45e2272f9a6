-- Applies verb $2 to job $1: $3 note, $4 delay in ms, $5 grace in ms.
select milepost.change($1, $2::text::milepost.verb, $3, $4, $5)
