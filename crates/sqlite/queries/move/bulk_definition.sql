-- A page of bulk_definition. ?1 how many, ?2 after this name
SELECT name, type, category, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max,
       rows_per_s, duty, failures_max, then_name, effects, fingerprint, columns, source, updated_at_ms, place, statements
FROM milepost_bulk_definition WHERE name > ?2 ORDER BY name LIMIT ?1
