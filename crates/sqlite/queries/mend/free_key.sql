-- Frees keys of jobs that are gone. ?1 at most
DELETE FROM job_key
WHERE (kind, key) IN (
    SELECT k.kind, k.key FROM job_key k
    WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = k.job_id)
    LIMIT ?1
)
RETURNING key
