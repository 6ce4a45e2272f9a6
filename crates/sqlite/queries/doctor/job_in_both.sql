-- Jobs that are live and have ended.
SELECT count(*) OVER () AS count, l.id AS what, 'live as ' || l.state || ', ended as ' || e.state AS detail
FROM milepost_live l
JOIN milepost_ended e ON e.id = l.id
ORDER BY what
LIMIT 10
