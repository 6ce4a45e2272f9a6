-- Forgets what was asked. ?1 job
DELETE FROM milepost_job WHERE id = ?1
