-- Deletes the oldest failed targets of a bulk job that no other run retries. ?1 job, ?2 how many at most
DELETE FROM milepost_bulk_failure WHERE pos IN (
    SELECT pos FROM milepost_bulk_failure INDEXED BY milepost_bulk_failure_own
    WHERE job_id = ?1 AND retried_by IS NULL ORDER BY pos LIMIT ?2
)
