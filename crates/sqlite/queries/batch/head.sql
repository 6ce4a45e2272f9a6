-- Returns the columns of a batch that its tasks depend on. ?1 batch
SELECT dag, version_id, state, stop IS NOT NULL, generation, parent_id, parent_task, items_of, depth,
       waiting, due, active, failed, aborted, succeeded, skipped, canceled, nominal_at_ms, traceparent, nominal_zone
FROM milepost_batch WHERE id = ?1
