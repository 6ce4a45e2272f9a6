-- A page of job. ?1 how many, ?2 after this id
SELECT id, kind, queue, payload, key, group_key, priority, max_attempts, timeout_ms, created_at_ms, nominal_at_ms,
       batch_id, task, traceparent, key_released IS NOT NULL
FROM milepost_job WHERE id > ?2 ORDER BY id LIMIT ?1
