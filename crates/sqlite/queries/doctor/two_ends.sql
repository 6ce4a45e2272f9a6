-- Runs that have ended twice.
SELECT count(*) OVER () AS count, h.job_id AS what, 'run ' || h.token || ' has ' || count(*) || ' ends' AS detail
FROM milepost_history h
WHERE h.from_state = 'running'
GROUP BY h.job_id, h.token
HAVING count(*) > 1
ORDER BY what
LIMIT 10
