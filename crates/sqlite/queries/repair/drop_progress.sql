-- Deletes progress of jobs that do not exist. ?1 at most
DELETE FROM milepost_progress
WHERE job_id IN (
    SELECT p.job_id FROM milepost_progress p WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = p.job_id) LIMIT ?1
)
RETURNING job_id
