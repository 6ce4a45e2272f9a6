-- Gives a key to another job. ?1 kind, ?2 key, ?3 the new owner
UPDATE milepost_job_key SET job_id = ?3, job_ended_at_ms = NULL WHERE kind = ?1 AND key = ?2
