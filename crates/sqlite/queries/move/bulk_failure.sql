-- A page of bulk_failure. ?1 how many, ?2 after this pos
SELECT pos, job_id, key, code, message, at_ms, retried_by
FROM milepost_bulk_failure WHERE pos > ?2 ORDER BY pos LIMIT ?1
