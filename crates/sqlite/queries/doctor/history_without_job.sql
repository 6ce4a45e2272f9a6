-- Histories of jobs that do not exist.
SELECT count(*) OVER () AS count, h.job_id AS what, count(*) || ' entries' AS detail
FROM milepost_history h
WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = h.job_id)
GROUP BY h.job_id
ORDER BY what
LIMIT 10
