-- Records that part $2 of move $1 has reached position $3 with $4 more rows, and whether it is complete ($5).
update milepost.arrival_part
set position = $3, rows = rows + $4, done = $5
where move_id = $1 and part = $2
