-- Keeps a key after its job is deleted. ?1 kind, ?2 key, ?3 job, ?4 when the job ended
UPDATE milepost_job_key SET job_ended_at_ms = ?4 WHERE kind = ?1 AND key = ?2 AND job_id = ?3
