-- Jobs that run under a worker that is long gone. ?1 the look
SELECT count(*) OVER () AS count, l.id AS what, 'under worker ' || w.id || CASE WHEN w.ended_at_ms IS NULL THEN ', whose lease ran out' ELSE ', which has ended' END AS detail
FROM milepost_live l
JOIN milepost_worker w ON w.id = l.worker_id
WHERE l.state = 'running'
  AND coalesce(w.ended_at_ms, w.lease_expires_at_ms) < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
ORDER BY what
LIMIT 10
