-- Gives back a key just taken for a job that turned out to exist.
-- ?1 kind, ?2 key
DELETE FROM milepost_job_key WHERE kind = ?1 AND key = ?2
