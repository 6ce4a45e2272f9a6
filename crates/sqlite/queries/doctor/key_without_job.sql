-- Keys of jobs that do not exist, except those that retention keeps longer than their job.
SELECT count(*) OVER () AS count, k.key AS what, 'of kind ' || k.kind AS detail
FROM milepost_job_key k
WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = k.job_id)
  AND k.job_ended_at_ms IS NULL
ORDER BY what
LIMIT 10
