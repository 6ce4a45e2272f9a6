-- Groups that more jobs hold than there are slots: one.
SELECT count(*) OVER () AS count, l.group_key AS what, count(*) || ' jobs hold it' AS detail
FROM live l
WHERE l.group_key IS NOT NULL AND l.state IN ('pending', 'running', 'retry_wait')
GROUP BY l.group_key
HAVING count(*) > 1
ORDER BY what
LIMIT 10
