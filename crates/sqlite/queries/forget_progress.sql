-- Forgets how far a job was: a rerun begins anew. ?1 job
DELETE FROM progress WHERE job_id = ?1
