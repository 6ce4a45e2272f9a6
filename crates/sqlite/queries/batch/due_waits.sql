-- Waits to check. ?1 now, ?2 how many
SELECT batch_id, task, signal, until_ms, on_timeout FROM milepost_batch_wait INDEXED BY milepost_batch_wait_check
WHERE check_at_ms <= ?1 ORDER BY check_at_ms LIMIT ?2
