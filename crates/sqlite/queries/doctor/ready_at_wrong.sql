-- Waiting jobs without a start time, and jobs that have one although they do not wait.
SELECT count(*) OVER () AS count, l.id AS what, l.state || CASE WHEN l.ready_at_ms IS NULL THEN ' without ready_at' ELSE ' with ready_at' END AS detail
FROM milepost_live l
WHERE (l.state IN ('pending', 'retry_wait')) <> (l.ready_at_ms IS NOT NULL)
ORDER BY what
LIMIT 10
