-- Deletes bulk jobs whose job does not exist. ?1 at most
DELETE FROM milepost_bulk
WHERE job_id IN (
    SELECT b.job_id FROM milepost_bulk b WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = b.job_id) LIMIT ?1
)
RETURNING job_id
