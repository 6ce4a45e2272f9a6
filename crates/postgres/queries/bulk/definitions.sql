-- The definition with name $1, or all (null).
select name, type, category, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max,
       rows_per_s, duty, failures_max, then_name, effects, fingerprint, source, columns::text as columns, place,
       statements::text as statements
from milepost.bulk_definition
where name = $1 or $1 is null
order by name
