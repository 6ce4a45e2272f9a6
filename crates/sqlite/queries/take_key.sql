-- Assigns a key to a job; changes nothing if another job of the kind owns it.
-- ?1 kind, ?2 key, ?3 job
INSERT INTO milepost_job_key (kind, key, job_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING
