-- Completes move $1: $2 the highest id of a worker, $3 who moves the store.
select milepost.complete_move($1, $2, $3)::text
