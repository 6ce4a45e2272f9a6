-- How far each part of move $1 is.
select part, position, rows, done from milepost.arrival_part where move_id = $1
