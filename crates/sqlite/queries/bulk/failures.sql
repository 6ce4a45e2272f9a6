-- Up to ?3 targets of bulk job ?1 that failed, after place ?2.
SELECT pos, key, code, message, at_ms, retried_by
FROM milepost_bulk_failure WHERE job_id = ?1 AND pos > ?2
ORDER BY pos LIMIT ?3
