-- Returns the job that owns a key. ?1 kind, ?2 key
SELECT job_id FROM milepost_job_key WHERE kind = ?1 AND key = ?2
