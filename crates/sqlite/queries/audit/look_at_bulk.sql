-- Returns the definition of bulk job ?1.
SELECT json_object('type', type, 'category', category, 'group', group_key, 'queue', queue, 'priority', priority,
                   'max_attempts', max_attempts, 'chunk_ms', chunk_ms, 'chunk_rows_min', chunk_rows_min,
                   'chunk_rows_max', chunk_rows_max, 'rows_per_s', rows_per_s, 'duty', duty, 'failures_max', failures_max,
                   'then', then_name, 'effects', effects, 'fingerprint', fingerprint, 'source', source,
                   'columns', columns, 'place', place, 'statements', json(statements))
FROM milepost_bulk_definition WHERE name = ?1
