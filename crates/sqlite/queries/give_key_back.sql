-- Releases a key that was just taken for a job that already exists.
-- ?1 kind, ?2 key
DELETE FROM milepost_job_key WHERE kind = ?1 AND key = ?2
