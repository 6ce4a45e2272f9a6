-- Returns a row if a wait is to be checked. ?1 now
SELECT 1 FROM milepost_batch_wait INDEXED BY milepost_batch_wait_check WHERE check_at_ms <= ?1 LIMIT 1
