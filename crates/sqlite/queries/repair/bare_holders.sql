-- Jobs that hold a group without a slot. ?1 at most
SELECT l.group_key, l.id FROM milepost_live l
WHERE l.group_key IS NOT NULL AND l.state IN ('pending', 'running', 'retry_wait')
  AND NOT EXISTS (SELECT 1 FROM milepost_group_slot s WHERE s.group_key = l.group_key AND s.job_id = l.id)
ORDER BY l.group_key, l.id LIMIT ?1
