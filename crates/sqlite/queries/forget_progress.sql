-- Forgets how far a job said it was. ?1 job
DELETE FROM milepost_progress WHERE job_id = ?1
