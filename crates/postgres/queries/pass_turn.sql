-- Gives the turn at retention up: nobody takes it before $1 ms have passed; who does goes on at $2.
update milepost.turn set until = now() + $1::bigint * interval '1 millisecond', place = $2 where name = 'retention'
