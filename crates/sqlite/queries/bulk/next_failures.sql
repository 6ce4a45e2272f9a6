-- Returns the next ?3 failures that bulk job ?1 is to retry, after position ?2.
SELECT pos, key FROM milepost_bulk_failure WHERE retried_by = ?1 AND pos > ?2 ORDER BY pos LIMIT ?3
