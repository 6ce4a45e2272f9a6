-- Deletes the progress of a job. ?1 job
DELETE FROM milepost_progress WHERE job_id = ?1
