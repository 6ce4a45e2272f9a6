-- Reruns tasks $2 of batch $1: $3 note, $4 generation, $5 version to move the batch to, whose schema the input matches
-- (null: none), $6 whether to rerun failed tasks in child batches too, $7 and $8 child batches and the generations in which
-- the caller has seen them.
select changed, now_at from milepost.run_again($1, $2, $3, $4, $5, true, $6, $7, $8)
