-- How many attempts were asked for a job. ?1 job
SELECT max_attempts FROM milepost_job WHERE id = ?1
