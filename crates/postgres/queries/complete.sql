-- Ends run $2 of job $1 as succeeded with result $3 (JSON text or null); false: fenced.
select milepost.complete($1, $2, $3::text::jsonb)
