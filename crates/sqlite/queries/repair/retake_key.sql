-- Assigns keys to jobs that do not own theirs, if no other job does. ?1 at most
INSERT INTO milepost_job_key (kind, key, job_id)
SELECT j.kind, j.key, j.id FROM milepost_job j
WHERE j.key IS NOT NULL AND j.key_released IS NULL
  AND NOT EXISTS (SELECT 1 FROM milepost_job_key k WHERE k.kind = j.kind AND k.key = j.key)
  AND NOT EXISTS (SELECT 1 FROM milepost_job o WHERE o.kind = j.kind AND o.key = j.key AND o.id <> j.id AND o.key_released IS NULL)
ORDER BY j.kind, j.key
LIMIT ?1
ON CONFLICT DO NOTHING
RETURNING job_id
