-- Records that job ?1 is a bulk job, over the failures of job ?2 if that is not NULL.
INSERT INTO milepost_bulk (job_id, origin, retry_of)
VALUES (?1, coalesce((SELECT origin FROM milepost_bulk WHERE job_id = ?2), ?1), ?2)
ON CONFLICT (job_id) DO NOTHING
