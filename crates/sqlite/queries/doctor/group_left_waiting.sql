-- Groups with a free slot and a job that is long due. ?1 the look
SELECT count(*) OVER () AS count, l.group_key AS what, count(*) || ' jobs wait' AS detail
FROM live l
WHERE l.state = 'blocked' AND l.group_key IS NOT NULL AND l.due_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
  AND NOT EXISTS (SELECT 1 FROM group_slot s WHERE s.group_key = l.group_key)
GROUP BY l.group_key
ORDER BY what
LIMIT 10
