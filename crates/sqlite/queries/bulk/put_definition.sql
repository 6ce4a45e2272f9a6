-- Stores the definition of a bulk job from ?17 (config or operator), with columns ?18 (JSON) of its file, at ?19, with the database of its
-- targets ?20 and its statements ?21 (JSON). Only an operator can replace a definition made by an operator.
INSERT INTO milepost_bulk_definition AS d
    (name, type, category, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max,
     rows_per_s, duty, failures_max, then_name, effects, fingerprint, source, columns, updated_at_ms, place, statements)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)
ON CONFLICT (name) DO UPDATE SET
    type = excluded.type, category = excluded.category, group_key = excluded.group_key, queue = excluded.queue,
    priority = excluded.priority, max_attempts = excluded.max_attempts, chunk_ms = excluded.chunk_ms,
    chunk_rows_min = excluded.chunk_rows_min, chunk_rows_max = excluded.chunk_rows_max,
    rows_per_s = excluded.rows_per_s, duty = excluded.duty, failures_max = excluded.failures_max,
    then_name = excluded.then_name, effects = excluded.effects, fingerprint = excluded.fingerprint,
    source = excluded.source, columns = excluded.columns, place = excluded.place, statements = excluded.statements,
    updated_at_ms = excluded.updated_at_ms
WHERE d.source = 'config' OR excluded.source = 'operator'
