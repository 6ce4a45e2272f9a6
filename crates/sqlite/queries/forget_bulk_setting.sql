-- Deletes the settings of a bulk job. ?1 job
DELETE FROM milepost_bulk_setting WHERE job_id = ?1
