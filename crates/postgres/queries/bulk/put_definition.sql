-- Stores the definition of a bulk job for source $17 (config or operator), with columns $18 (JSON text) of its file, or the
-- place $19 of its targets, and its statements $20 (JSON text). An operator's definition is replaced only by an operator.
insert into milepost.bulk_definition as d
    (name, type, category, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max,
     rows_per_s, duty, failures_max, then_name, effects, fingerprint, source, columns, place, statements)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18::text::jsonb, $19,
        $20::text::jsonb)
on conflict (name) do update
set type = excluded.type, category = excluded.category, group_key = excluded.group_key, queue = excluded.queue,
    priority = excluded.priority, max_attempts = excluded.max_attempts, chunk_ms = excluded.chunk_ms,
    chunk_rows_min = excluded.chunk_rows_min, chunk_rows_max = excluded.chunk_rows_max,
    rows_per_s = excluded.rows_per_s, duty = excluded.duty, failures_max = excluded.failures_max,
    then_name = excluded.then_name, effects = excluded.effects, fingerprint = excluded.fingerprint,
    source = excluded.source, columns = excluded.columns, place = excluded.place,
    statements = excluded.statements, updated_at = now()
where d.source = 'config' or excluded.source = 'operator'
