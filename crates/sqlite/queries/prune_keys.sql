-- Deletes keys kept after their jobs. ?1 which ended before this time, ?2 how many
DELETE FROM milepost_job_key WHERE (key, kind) IN (
    SELECT key, kind FROM milepost_job_key INDEXED BY milepost_job_key_due
    WHERE job_ended_at_ms < ?1 ORDER BY job_ended_at_ms LIMIT ?2
)
