-- Gives the failures of bulk job ?1 that nobody tries again to bulk job ?2.
UPDATE milepost_bulk_failure SET retried_by = ?2 WHERE job_id = ?1 AND retried_by IS NULL
