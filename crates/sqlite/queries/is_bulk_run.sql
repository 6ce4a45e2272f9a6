-- Returns a row if a job is a run of a bulk job. ?1 job
SELECT 1 FROM milepost_bulk WHERE job_id = ?1
