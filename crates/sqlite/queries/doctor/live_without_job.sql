-- Live rows whose job is gone.
SELECT count(*) OVER () AS count, l.id AS what, 'live as ' || l.state AS detail
FROM live l
WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = l.id)
ORDER BY what
LIMIT 10
