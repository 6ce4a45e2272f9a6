-- Deletes the oldest failed targets of other runs that a bulk job retries. ?1 job, ?2 how many at most
DELETE FROM milepost_bulk_failure WHERE pos IN (
    SELECT pos FROM milepost_bulk_failure INDEXED BY milepost_bulk_failure_retried
    WHERE retried_by = ?1 ORDER BY pos LIMIT ?2
)
