-- Returns the checkpoint from which a job's next attempt can resume. ?1 job
SELECT checkpoint FROM milepost_progress WHERE job_id = ?1
