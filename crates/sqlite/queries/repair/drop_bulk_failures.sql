-- Deletes failures of bulk jobs that do not exist. ?1 at most
DELETE FROM milepost_bulk_failure
WHERE pos IN (
    SELECT f.pos FROM milepost_bulk_failure f
    WHERE NOT EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.job_id = coalesce(f.retried_by, f.job_id)) LIMIT ?1
)
RETURNING coalesce(retried_by, job_id)
