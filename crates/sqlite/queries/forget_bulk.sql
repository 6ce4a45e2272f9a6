-- Forgets how far a bulk job was. ?1 job
DELETE FROM milepost_bulk WHERE job_id = ?1
