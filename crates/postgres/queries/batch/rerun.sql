-- Runs tasks $2 of batch $1 again: $3 note, $4 generation, $5 version that the batch goes over to, which its input fits (null: none).
select milepost.rerun_tasks($1, $2, $3, $4, $5, true)
