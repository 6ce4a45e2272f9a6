-- Deletes a key with its job. ?1 kind, ?2 key, ?3 job
DELETE FROM milepost_job_key WHERE kind = ?1 AND key = ?2 AND job_id = ?3
