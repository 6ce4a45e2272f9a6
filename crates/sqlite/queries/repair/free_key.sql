-- Frees keys of jobs that do not exist, except those that retention keeps longer than their job. ?1 at most
DELETE FROM milepost_job_key
WHERE (kind, key) IN (
    SELECT k.kind, k.key FROM milepost_job_key k
    WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = k.job_id)
      AND k.job_ended_at_ms IS NULL
    LIMIT ?1
)
RETURNING key
