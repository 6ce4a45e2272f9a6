-- Begins move $1 from the store $2, with these parts ($3).
select milepost.begin_move($1, $2, $3)::text
