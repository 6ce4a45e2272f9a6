-- Ends the turn at retention: no process takes the next one before $1 ms have passed; it continues at $2.
update milepost.turn set until = now() + $1::bigint * interval '1 millisecond', place = $2 where name = 'retention'
