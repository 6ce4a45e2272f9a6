-- A page of batch. ?1 how many, ?2 after this id
SELECT id, dag, version_id, key, state, stop, generation, waiting, due, active, failed, aborted, succeeded, skipped, canceled,
       parent_id, parent_task, items_of, depth, nominal_at_ms, created_at_ms, updated_at_ms, ended_at_ms, traceparent, nominal_zone
FROM milepost_batch WHERE id > ?2 ORDER BY id LIMIT ?1
