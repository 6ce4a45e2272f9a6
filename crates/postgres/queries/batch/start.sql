-- Starts a batch: $1 DAG, $2 key, $3 input (JSON text), $4 version, $5 whether the input was checked, $6 id, $7 tick, $8 trace, $9 the time zone of the tick's date.
select batch_id, duplicate, due_made from milepost.begin_batch($1, $2, $3::text::jsonb, $4, $5, $6, $7, $8, $9)
