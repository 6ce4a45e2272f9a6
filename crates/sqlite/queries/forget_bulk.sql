-- Deletes the progress of a bulk job. ?1 job
DELETE FROM milepost_bulk WHERE job_id = ?1
