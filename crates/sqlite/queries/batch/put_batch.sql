-- Stores a new batch.
-- ?1 id, ?2 DAG, ?3 version, ?4 key, ?5 waiting, ?6 due, ?7 parent, ?8 its task, ?9 items of, ?10 depth,
-- ?11 its tick, ?12 now, ?13 its trace, ?14 the zone of its tick
INSERT INTO milepost_batch (id, dag, version_id, key, state, waiting, due, active, failed, aborted, succeeded, skipped,
                            canceled, parent_id, parent_task, items_of, depth, nominal_at_ms, created_at_ms, updated_at_ms,
                            traceparent, nominal_zone)
VALUES (?1, ?2, ?3, ?4, 'running', ?5, ?6, 0, 0, 0, 0, 0, 0, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?14)
