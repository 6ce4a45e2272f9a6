-- Returns up to ?3 failed targets of bulk job ?1, after position ?2.
SELECT pos, key, code, message, at_ms, retried_by
FROM milepost_bulk_failure WHERE job_id = ?1 AND pos > ?2
ORDER BY pos LIMIT ?3
