-- Returns the definition with name ?1, or all.
SELECT name, type, category, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max,
       rows_per_s, duty, failures_max, then_name, effects, fingerprint, source, columns, place, statements
FROM milepost_bulk_definition
WHERE name = ?1 OR ?1 IS NULL
ORDER BY name
