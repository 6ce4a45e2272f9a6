-- Completes move $1: $2 the highest id that a worker had, $3 who moves.
select milepost.complete_move($1, $2, $3)::text
