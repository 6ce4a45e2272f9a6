-- Gives the turn at retention up: nobody takes it before $1 ms have passed.
update milepost.turn set until = now() + $1::bigint * interval '1 millisecond' where name = 'retention'
