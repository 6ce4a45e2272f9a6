-- Deletes the request of a job. ?1 job
DELETE FROM milepost_job WHERE id = ?1
