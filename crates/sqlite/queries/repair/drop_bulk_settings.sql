-- Deletes settings of bulk jobs that do not exist. ?1 at most
DELETE FROM milepost_bulk_setting
WHERE job_id IN (
    SELECT s.job_id FROM milepost_bulk_setting s
    WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = s.job_id) LIMIT ?1
)
RETURNING job_id
