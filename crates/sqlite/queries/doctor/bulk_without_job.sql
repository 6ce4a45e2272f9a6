-- Bulk jobs whose job is gone.
SELECT count(*) OVER () AS count, b.job_id AS what, 'a row of bulk, ' || (b.done + b.failed) || ' targets on' AS detail
FROM milepost_bulk b
WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = b.job_id)
ORDER BY what
LIMIT 10
