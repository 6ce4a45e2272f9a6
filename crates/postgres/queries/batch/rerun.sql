-- Runs tasks $2 of batch $1 again: $3 note, $4 generation, $5 version that the batch goes over to, which its input fits (null: none), $6 also what
-- has failed in the batches that other tasks are, $7 and $8 inner batches and the generations that they were seen in.
select changed, now_at from milepost.run_again($1, $2, $3, $4, $5, true, $6, $7, $8)
