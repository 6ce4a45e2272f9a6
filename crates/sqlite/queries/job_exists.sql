-- Returns a row if a job exists. ?1 job
SELECT 1 FROM milepost_job WHERE id = ?1
