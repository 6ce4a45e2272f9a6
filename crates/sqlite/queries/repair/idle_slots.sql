-- Slots of jobs that do not hold them. ?1 at most
SELECT s.group_key, s.job_id FROM milepost_group_slot s
LEFT JOIN milepost_live l ON l.id = s.job_id
WHERE l.id IS NULL OR l.group_key IS DISTINCT FROM s.group_key OR l.state NOT IN ('pending', 'running', 'retry_wait')
ORDER BY s.group_key LIMIT ?1
