-- Bulk jobs whose token is higher than that of their job.
SELECT count(*) OVER () AS count, d.job_id AS what, 'its progress has token ' || d.token || ', its job has ' || d.of_job AS detail
FROM (
    SELECT b.job_id, b.token, max(coalesce(l.token, e.token), coalesce(e.token, l.token)) AS of_job
    FROM milepost_bulk b
    LEFT JOIN milepost_live l ON l.id = b.job_id
    LEFT JOIN milepost_ended e ON e.id = b.job_id
) d
WHERE d.token > d.of_job
ORDER BY what
LIMIT 10
