-- Waiting jobs with history entries more than a minute in the future. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, l.id AS what,
       'waits until ' || datetime(COALESCE(l.ready_at_ms, l.due_at_ms) / 1000, 'unixepoch') AS detail
FROM milepost_live l
WHERE COALESCE(l.ready_at_ms, l.due_at_ms) > (?1 ->> 'now_ms') + 60000
  AND EXISTS (SELECT 1 FROM milepost_history h WHERE h.job_id = l.id AND h.at_ms > (?1 ->> 'now_ms') + 60000)
ORDER BY what
LIMIT 10
