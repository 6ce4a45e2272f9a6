-- Keys of jobs that are gone.
SELECT count(*) OVER () AS count, k.key AS what, 'of kind ' || k.kind AS detail
FROM job_key k
WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = k.job_id)
ORDER BY what
LIMIT 10
