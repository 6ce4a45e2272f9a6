-- Starts a batch: $1 DAG, $2 key, $3 input (JSON text), $4 version, $5 whether the input was checked, $6 id, $7 tick, $8 the
-- trace that it follows from, $9 the time zone of the tick's date. may_release: whether the caller's role may evaluate the
-- due tasks.
select batch_id, duplicate, due_made, has_table_privilege('milepost.batch_task', 'update') as may_release
from milepost.begin_batch($1, $2, $3::text::jsonb, $4, $5, $6, $7, $8, $9)
