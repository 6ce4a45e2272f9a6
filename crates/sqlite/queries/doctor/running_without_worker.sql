-- Jobs that run without a known worker.
SELECT count(*) OVER () AS count, l.id AS what, coalesce('its worker ' || l.worker_id || ' does not exist', 'no worker') AS detail
FROM milepost_live l
WHERE l.state = 'running'
  AND (l.worker_id IS NULL OR NOT EXISTS (SELECT 1 FROM milepost_worker w WHERE w.id = l.worker_id))
ORDER BY what
LIMIT 10
