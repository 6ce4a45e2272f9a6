-- Forgets how far a job said it was. ?1 job
DELETE FROM progress WHERE job_id = ?1
