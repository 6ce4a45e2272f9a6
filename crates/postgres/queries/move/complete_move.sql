-- Completes move $1: $2 the highest id that a worker had, $3 to $5 states and the first jobs of each whose history is
-- whole (their ends and ids), $6 who moves.
select milepost.complete_move($1, $2, $3, $4, $5, $6)::text
