-- Jobs that hold a group without its slot.
SELECT count(*) OVER () AS count, l.id AS what, l.state || ' in group ' || l.group_key AS detail
FROM milepost_live l
WHERE l.group_key IS NOT NULL AND l.state IN ('pending', 'running', 'retry_wait')
  AND NOT EXISTS (SELECT 1 FROM milepost_group_slot s WHERE s.group_key = l.group_key AND s.job_id = l.id)
ORDER BY what
LIMIT 10
