-- Where a job's next attempt can go on from. ?1 job
SELECT checkpoint FROM milepost_progress WHERE job_id = ?1
