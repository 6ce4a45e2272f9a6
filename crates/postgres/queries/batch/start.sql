-- Starts a batch: $1 DAG, $2 key, $3 input (JSON text), $4 version, $5 id, $6 tick. The input was checked.
select batch_id, duplicate from milepost.start_batch($1, $2, $3::text::jsonb, $4, true, $5, $6)
