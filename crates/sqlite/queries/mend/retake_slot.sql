-- Gives free slots of groups to jobs that hold the group without one. ?1 at most
INSERT INTO group_slot (group_key, slot, job_id)
SELECT l.group_key, 0, l.id FROM live l
WHERE l.group_key IS NOT NULL AND l.state IN ('pending', 'running', 'retry_wait')
  AND NOT EXISTS (SELECT 1 FROM group_slot s WHERE s.group_key = l.group_key)
ORDER BY l.group_key, l.id
LIMIT ?1
ON CONFLICT DO NOTHING
RETURNING job_id
