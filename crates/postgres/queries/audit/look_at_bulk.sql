-- The definition of bulk job $1.
select jsonb_build_object('type', type, 'category', category, 'group', group_key, 'queue', queue, 'priority', priority,
                          'max_attempts', max_attempts, 'chunk_ms', chunk_ms, 'chunk_rows_min', chunk_rows_min,
                          'chunk_rows_max', chunk_rows_max, 'rows_per_s', rows_per_s, 'duty', duty,
                          'failures_max', failures_max, 'then', then_name, 'effects', effects, 'fingerprint', fingerprint,
                          'source', source, 'columns', columns::text, 'place', place,
                          'statements', statements)::text
from milepost.bulk_definition where name = $1
