-- Creates the jobs of due tasks: $1 batches, $2 tasks, $3 payloads (JSON text), parallel arrays.
select milepost.release_tasks($1, $2, $3::text[]::jsonb[])
