-- A page of job_key. ?1 how many, ?2 after this key, ?3 and kind
SELECT key, kind, job_id, job_ended_at_ms FROM milepost_job_key WHERE (key, kind) > (?2, ?3) ORDER BY key, kind LIMIT ?1
