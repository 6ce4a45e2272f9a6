-- Jobs that are both live and ended.
SELECT count(*) OVER () AS count, l.id AS what, 'state in live: ' || l.state || ', in ended: ' || e.state AS detail
FROM milepost_live l
JOIN milepost_ended e ON e.id = l.id
ORDER BY what
LIMIT 10
