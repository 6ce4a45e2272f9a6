-- Progress of jobs that do not exist.
SELECT count(*) OVER () AS count, p.job_id AS what, 'a row of progress' AS detail
FROM milepost_progress p
WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = p.job_id)
ORDER BY what
LIMIT 10
