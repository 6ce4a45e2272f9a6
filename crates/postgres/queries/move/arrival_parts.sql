-- The progress of each part of move $1.
select part, position, rows, done from milepost.arrival_part where move_id = $1
