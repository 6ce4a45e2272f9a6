-- Jobs that do not own their key.
SELECT count(*) OVER () AS count, j.id AS what, 'key ' || j.key || ' of kind ' || j.kind AS detail
FROM milepost_job j
WHERE j.key IS NOT NULL AND j.key_released IS NULL
  AND NOT EXISTS (SELECT 1 FROM milepost_job_key k WHERE k.kind = j.kind AND k.key = j.key)
ORDER BY what
LIMIT 10
