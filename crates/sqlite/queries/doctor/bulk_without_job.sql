-- Bulk jobs whose job does not exist.
SELECT count(*) OVER () AS count, b.job_id AS what, 'a row of bulk with ' || (b.done + b.failed) || ' processed targets' AS detail
FROM milepost_bulk b
WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = b.job_id)
ORDER BY what
LIMIT 10
