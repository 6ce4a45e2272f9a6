-- Returns the key of a job. ?1 job
SELECT kind, key FROM milepost_job WHERE id = ?1 AND key IS NOT NULL
