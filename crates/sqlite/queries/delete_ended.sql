-- Deletes a job that is rerun from ended. ?1 job
DELETE FROM milepost_ended WHERE id = ?1
