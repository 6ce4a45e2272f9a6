-- Notes that part $2 of move $1 has reached $3 with $4 more rows, $5: and is all there.
update milepost.arrival_part
set position = $3, rows = rows + $4, done = $5
where move_id = $1 and part = $2
