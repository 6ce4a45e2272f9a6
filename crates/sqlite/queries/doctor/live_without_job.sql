-- Live rows whose job does not exist.
SELECT count(*) OVER () AS count, l.id AS what, 'state in live: ' || l.state AS detail
FROM milepost_live l
WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = l.id)
ORDER BY what
LIMIT 10
