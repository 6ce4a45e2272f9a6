-- Slots of groups whose job does not hold them.
SELECT count(*) OVER () AS count, s.group_key AS what, 'its job is ' || coalesce(l.state, 'not live') AS detail
FROM milepost_group_slot s
LEFT JOIN milepost_live l ON l.id = s.job_id
WHERE l.id IS NULL OR l.group_key IS DISTINCT FROM s.group_key
   OR l.state NOT IN ('pending', 'running', 'retry_wait')
ORDER BY what
LIMIT 10
